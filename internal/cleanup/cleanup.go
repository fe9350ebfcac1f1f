// Package cleanup removes what ended runs have left behind: records, logs and processes.
package cleanup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/view"
)

// Select returns the runs to remove. These are the runs in names or, if names is empty, all runs
// that ended at least minAge before now.
func Select(dir string, names []string, minAge time.Duration, now time.Time) ([]home.Summary, error) {
	found := []home.Summary{}
	for _, name := range names {
		run, err := home.Find(dir, name)
		if err != nil {
			return nil, &failure.Error{Code: failure.CodeUsage, Err: err}
		}
		s, err := run.Summary()
		if err != nil {
			return nil, err
		}
		if !s.State.Final() {
			return nil, failure.Usage("gangrun stop "+run.ID+" ends it", "run %s is %s and cannot be removed", run.ID, s.State)
		}
		found = append(found, s)
	}
	if len(names) > 0 {
		return found, nil
	}
	all, err := home.List(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		end := s.Ended
		if end.IsZero() {
			end = s.Started // the run is lost, and its end was not recorded
		}
		if end.IsZero() {
			end = home.Run{ID: s.Run}.Created() // the run was lost before its start was recorded
		}
		if s.State.Final() && !end.IsZero() && now.Sub(end) >= minAge {
			found = append(found, s)
		}
	}
	return found, nil
}

// removed is the entry of one run in what clean prints.
type removed struct {
	Run   string    `json:"run"`
	State job.State `json:"state"`
	Bytes int64     `json:"bytes"`
	// Processes are the PIDs of the processes that the run had left behind on this machine.
	Processes []int `json:"processes,omitempty"`
	// Containers are the IDs of the containers that the run had left behind on this machine.
	Containers []string `json:"containers,omitempty"`
	// Left is set if the run's entry was a link. It is the directory that the link led to, which was not removed.
	Left string `json:"left,omitempty"`
}

// ended has the processes and containers that runs had left on this machine, and that were removed.
type ended struct {
	killed     []leftover.Process
	containers []job.CleanedContainer
}

// Result is what Remove has removed or, in a dry run, would remove. It also has the processes and containers that the
// caller of Remove had already removed.
type Result struct {
	runs []removed
	ended
	dry bool
	err error // names the runs that could not be removed
}

// Remove removes the records of runs, and their files in the directory for temporary files. killed and containers are
// what the caller has already ended and removed. Remove only adds them to the Result. If dry is true, Remove removes
// nothing.
func Remove(runs []home.Summary, killed []leftover.Process, containers []job.CleanedContainer, dry bool) Result {
	result := Result{runs: []removed{}, ended: ended{killed, containers}, dry: dry}
	for _, v := range runs {
		r := removed{Run: v.Run, State: v.State, Bytes: treeBytes(v.Dir)}
		if info, err := os.Lstat(v.Dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			r.Left, _ = filepath.EvalSymlinks(v.Dir)
		}
		if !dry {
			tmp := filepath.Join(os.TempDir(), "gangrun-"+strconv.Itoa(os.Getuid()), v.Run)
			if err := errors.Join(os.RemoveAll(v.Dir), os.RemoveAll(tmp)); err != nil {
				result.err = errors.Join(result.err, err)
				continue
			}
		}
		result.runs = append(result.runs, r)
	}
	return result
}

// Print writes the result to w as text or, if asJSON is true, as JSON. It returns an error if writing fails, or if
// Remove could not remove a run.
func (r Result) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		return errors.Join(r.err, view.JSON(w, r.ended.addTo(r.runs)))
	}
	verb, end := "removed", "ended"
	if r.dry {
		verb, end = "would remove", "would end"
	}
	total := int64(0)
	for _, run := range r.runs {
		total += run.Bytes
		fmt.Fprintf(w, "%s %s (%s, %.1f MB)\n", verb, run.Run, run.State, float64(run.Bytes)/1e6)
		if run.Left != "" {
			fmt.Fprintf(w, "%s is left: the run was a link to it\n", run.Left)
		}
	}
	for _, p := range r.killed {
		fmt.Fprintf(w, "%s process %d (%s), %s\n", end, p.PID, p.Name, leftBy(p))
	}
	for _, c := range r.containers {
		fmt.Fprintf(w, "%s the container %s of %s\n", verb, c.ID, c.Gang)
	}
	_, err := fmt.Fprintf(w, "%s %d runs, %.1f MB\n", verb, len(r.runs), float64(total)/1e6)
	return errors.Join(r.err, err)
}

// treeBytes returns the size of all files below dir.
func treeBytes(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
