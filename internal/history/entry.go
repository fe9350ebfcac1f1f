// Package history keeps a record of how runs have ended. The history is one SQLite file in gangrun's home.
// Controllers on several hosts may use the file at the same time, also over NFS.
package history

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Entry is a run that has ended. Its JSON names are an API.
type Entry struct {
	Run     string    `json:"run"` // the ID of the run
	Ended   time.Time `json:"ended"`
	Name    string    `json:"name"`
	Command []string  `json:"command"`
	// Fingerprint is the same for runs of the same job with the same program, code, image, inputs, environment and
	// standard input. It is empty if it is not known.
	Fingerprint string    `json:"fingerprint"`
	State       job.State `json:"state"`
	ExitCode    int       `json:"exit_code"`
	// MayHelp is true if another run may get further than this one.
	MayHelp bool `json:"may_help"`
	Failure
	// Times is how many runs in the history have failed in the same way as this run: with the same category and
	// signature, and with the same name or, if the run has no name, with the same command. List sets Times. It
	// is 0 for a run that has no category.
	Times int `json:"times"`
}

// Failure is why a run failed. If the run did not fail, Category is empty.
type Failure struct {
	Category  job.Category `json:"category"`
	Signature string       `json:"signature"`
	Rank      int          `json:"rank"` // -1 if no rank is at fault
	Step      int64        `json:"step"` // the highest step of the last attempt; -1 if none is known
	Text      string       `json:"text"` // the text of the cause; if there is none, why the run ended
	// Artefact is what the failure is about, such as a file. Mark is the state of that file when the run ended
	// (see MarkOf). By it, Unchanged finds out whether the file has changed since.
	Artefact string `json:"artefact"`
	Mark     string `json:"-"`
}

// Unchanged reports whether the file that the failure is about is still as it was when the run ended. It
// returns true if the failure is not about a file.
func (f Failure) Unchanged(workdir string) bool { return MarkOf(f.Artefact, workdir) == f.Mark }

// MarkOf returns the size and the time of the last change of the file at path. It returns "" if this machine
// has no such file. A path that is not absolute is relative to workdir.
func MarkOf(path, workdir string) string {
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(workdir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}
