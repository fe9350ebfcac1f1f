// Package runlogs finds and shows the log files of a run.
package runlogs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
)

// Query says which logs to show.
type Query struct {
	Rank    int    // -1 is every rank
	Attempt string // "" is the latest
	Stream  string // "" is both
	OpenMPI bool   // show also the files of mpirun and of Open MPI's daemons
}

// File is one log file of a run.
type File struct {
	Attempt string `json:"attempt"`
	Rank    int    `json:"rank"`   // -1 if the file is not a rank's
	Stream  string `json:"stream"` // out or err; if the file is not a rank's, its writer: mpirun or daemon
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
}

var (
	logForm     = regexp.MustCompile(`^rank-([0-9]{4,})\.(out|err)$`)
	openMPIForm = regexp.MustCompile(`^(mpirun|daemon)(?:-.*)?\.log$`)
)

// where returns the attempt of a run that is wanted, and the directory of its logs.
func (q Query) where(s home.Summary) (attempt, dir string) {
	attempt = q.Attempt
	if attempt == "" {
		attempt = "trial"
		if s.Attempts > 0 {
			attempt = strconv.Itoa(s.Attempts)
		}
	}
	if strings.HasPrefix(attempt, "trial") {
		return trialStep(filepath.Join(s.Dir, "attempts", "trial"), attempt)
	}
	return attempt, filepath.Join(s.Dir, "attempts", attempt)
}

// Dir returns the directory of the logs of the attempt that is wanted.
func (q Query) Dir(s home.Summary) string {
	_, dir := q.where(s)
	return dir
}

// Files lists the log files of a run that exist now.
func (q Query) Files(s home.Summary) ([]File, error) {
	attempt, dir := q.where(s)
	run := home.Run{ID: s.Run, Dir: s.Dir}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) && q.Attempt == "" {
		return []File{}, nil // nothing has been started yet
	}
	if err != nil {
		return nil, &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("run %s has no logs of attempt %s: %w", run.ID, attempt, err), Hint: "gangrun status " + run.ID + " tells its attempts"}
	}
	files := []File{}
	for _, e := range entries {
		f := File{Attempt: attempt, Path: filepath.Join(dir, e.Name())}
		if m := logForm.FindStringSubmatch(e.Name()); m != nil {
			f.Stream = m[2]
			f.Rank, _ = strconv.Atoi(m[1]) // digits, by its form
		} else if m := openMPIForm.FindStringSubmatch(e.Name()); m != nil && q.OpenMPI {
			f.Rank, f.Stream = -1, m[1]
		} else {
			continue
		}
		if q.Rank >= 0 && f.Rank != q.Rank || q.Stream != "" && f.Stream != q.Stream {
			continue
		}
		if info, err := e.Info(); err == nil {
			f.Bytes = info.Size()
		}
		files = append(files, f)
	}
	return files, nil
}

// trialStep returns the name of a round of the trial, and where its log files are:
// those of the first are in dir, those of others in directories of their own there.
// "trial" is the latest round.
func trialStep(dir, step string) (name, logs string) {
	if step == "trial" {
		step = "trial1"
		for n := 2; ; n++ {
			next := "trial" + strconv.Itoa(n)
			if _, err := os.Stat(filepath.Join(dir, next)); err != nil {
				break
			}
			step = next
		}
	}
	if step == "trial1" {
		return "trial", dir
	}
	return step, filepath.Join(dir, step)
}
