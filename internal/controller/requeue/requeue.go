// Package requeue decides whether a batch job is queued again after its run has ended. It also stores what the next
// start of the job must know.
package requeue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Leg is one start of the job by the batch system, with the run that gangrun made in it.
type Leg struct {
	Run      string       `json:"run"`
	Category job.Category `json:"category,omitempty"` // the category of the cause of the failure
	Saved    bool         `json:"saved"`              // the run has written a good checkpoint
	Without  []string     `json:"without,omitempty"`  // hosts that later legs must not get
}

// Ticket is the record of a job: its legs so far.
type Ticket struct {
	Legs []Leg `json:"legs"`
}

// maxTicket limits the size of a ticket's file, in bytes.
const maxTicket = 1 << 20

// path returns the file of a job's ticket.
func path(home, id string) string {
	return filepath.Join(home, "requeue", "slurm-"+filepath.Base(id)+".json")
}

// Read returns the ticket of a job. If there is none, Read returns an empty ticket.
func Read(home, id string) (t Ticket, err error) {
	data, err := safefile.ReadFile(path(home, id), maxTicket)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return Ticket{}, fmt.Errorf("read what earlier starts of job %s have left: %w", id, err)
	}
	return t, nil
}

// Write writes the ticket of a job.
func (t Ticket) Write(home, id string) error {
	data, err := json.Marshal(t)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path(home, id)), 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(path(home, id), append(data, '\n'), 0o600)
	}
	return err
}

// Remove removes the ticket of a job that has ended for good.
func Remove(home, id string) error {
	err := os.Remove(path(home, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LegOf returns the leg of a run that has ended.
func LegOf(r runreport.Report) Leg {
	leg := Leg{Run: r.Run}
	if c := r.Cause(); c != nil {
		leg.Category = c.Category
	}
	for _, a := range r.Attempts {
		leg.Saved = leg.Saved || a.Saved != nil
		if a.Cause == nil || a.Cause.Host == "" || slices.Contains(leg.Without, a.Cause.Host) {
			continue
		}
		switch a.Cause.Category {
		case job.HostLost, job.GPUHardware, job.CUDAFailure, job.CUDAInit:
			leg.Without = append(leg.Without, a.Cause.Host)
		}
	}
	return leg
}

// Decision says what happens to a job.
type Decision struct {
	Requeue bool
	Without []string // hosts that the job must not get
	Why     string
}

// Decide decides whether a job is queued again after leg. history has the legs before that leg.
// limit is the number of legs that the user allows. mayHelp is true if the way in which the run
// ended leaves a chance that another run succeeds.
func Decide(history []Leg, leg Leg, mayHelp bool, limit int) Decision {
	switch {
	case !mayHelp:
		return Decision{Why: "another run does not help"}
	case len(history)+1 >= limit:
		return Decision{Why: fmt.Sprintf("this was leg %d of %d", len(history)+1, limit)}
	case leg.Category == job.TimeLimit && !leg.Saved:
		return Decision{Why: "it has written no checkpoint within its time limit, and would not get further"}
	case !leg.Saved && len(history) > 0 && !history[len(history)-1].Saved:
		return Decision{Why: "two legs in a row have written no checkpoint"}
	}
	d := Decision{Requeue: true, Why: fmt.Sprintf("leg %d of %d", len(history)+2, limit)}
	d.Without = slices.Clone(leg.Without)
	return d
}
