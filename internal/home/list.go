package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/journal"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Summary describes a run in a list of runs.
type Summary struct {
	Run  string `json:"run"` // the ID of the run
	Dir  string `json:"dir"`
	Name string `json:"name"` // the name of the job; empty if it has none
	// State is job.StateLost if the run's controller has ended before the run. It is empty if
	// the journal cannot be read.
	State job.State `json:"state"`
	// Ranks is the size of the gang in its last placement. If the gang was never placed, it is
	// the size for which the job asks.
	Ranks    int       `json:"ranks"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	ExitCode *int      `json:"exit_code"`
	Attempts int       `json:"attempts"` // number of attempts so far, without the trial
	Step     int64     `json:"step"`     // the highest step of the latest attempt; -1 if none is known
	// Controller is the process that controls the run; nil if it is not known.
	Controller *job.Controller `json:"controller,omitempty"`
	// Batch is the batch job in which the run was started; nil if it was not started in one.
	Batch *job.BatchJob `json:"batch,omitempty"`
	// Problem is why the journal cannot be read.
	Problem string `json:"problem,omitempty"`

	elastic bool // the gang may be smaller than the job asks for
}

// List returns the summary of every run of the home at dir, newest first. It reads only the
// beginning and the end of a long journal. It ignores other files in the home. The summary
// of a run whose journal cannot be read has the reason as its Problem.
func List(dir string) ([]Summary, error) {
	all, err := runs(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Summary, 0, len(all))
	for _, r := range all {
		s, err := r.Summary()
		if errors.Is(err, fs.ErrNotExist) {
			continue // the run has been removed in the meantime
		}
		if err != nil {
			s.Problem = err.Error()
		}
		out = append(out, s)
	}
	return out, nil
}

// young is how long a run without an event counts as being created. After that time, the process that created the run
// must have died.
const young = time.Minute

// Summary returns the summary of one run, as List does. The error is why the journal cannot
// be read. It wraps fs.ErrNotExist if the run's directory is gone.
func (r Run) Summary() (Summary, error) {
	s, err := r.fold()
	if err != nil || s.State.Final() {
		return s, err
	}
	if s.State == "" {
		s.State = job.StatePreflight
	}
	if s.Controller == nil {
		info, err := r.stat()
		if err != nil {
			return s, err
		}
		made := r.Created() // use the ID, because an attach that fails changes the time of the directory
		if made.IsZero() || info.ModTime().Before(made) {
			made = info.ModTime()
		}
		if time.Since(made) > young {
			s.State = job.StateLost
		}
		return s, nil
	}
	if alive, known := Alive(*s.Controller); alive || !known {
		return s, nil
	}
	// The last event of the journal may have been written after the journal was read. Or another controller may have
	// taken over the run.
	gone := *s.Controller
	if s, err = r.fold(); err == nil && !s.State.Final() && (s.Controller == nil || *s.Controller == gone) {
		s.State = job.StateLost
	}
	return s, err
}

const (
	headEvents = 64       // so many first events say what a run is and, mostly, how it began
	tailBytes  = 64 << 10 // the length of some 500 events
)

// fold reads the journal.
func (r Run) fold() (Summary, error) {
	s := Summary{Run: r.ID, Dir: r.Dir, Step: -1}
	file, err := safefile.Open(r.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		_, err := r.stat() // the directory is half-made or gone
		s.Controller = r.controller()
		return s, err
	}
	if err != nil {
		return s, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s, fmt.Errorf("cannot read the journal: %w", err)
	}
	size := info.Size()
	left := headEvents
	if size <= 2*tailBytes {
		left = -1 // read all events
	}
	_, err = journal.Scan(io.NewSectionReader(file, 0, size), func(e job.Event) bool {
		s.add(e)
		left--
		return left != 0 || s.elastic // any event may have the size of an elastic gang
	})
	// A line may be longer than the tail. So go back until a line names an attempt.
	for tail := int64(tailBytes); err == nil && left == 0 && !s.elastic; tail *= 4 {
		from := max(0, size-tail)
		seen := false
		_, err = journal.Scan(io.NewSectionReader(file, from, size-from), func(e job.Event) bool {
			seen = seen || e.Attempt > 0
			s.add(e)
			return true
		})
		if seen || from == 0 {
			break
		}
	}
	if err != nil {
		return s, fmt.Errorf("cannot read the journal: %w", err)
	}
	if c := r.controller(); c != nil {
		s.Controller = c // the journal may lack the controller
	}
	return s, nil
}

// add adds an event to the summary. Earlier events may be missing.
func (s *Summary) add(e job.Event) {
	if e.Controller != nil {
		s.Controller = e.Controller
	}
	if e.Attempt > s.Attempts {
		s.Attempts, s.Step = e.Attempt, -1
	}
	switch e.Kind {
	case job.KindCreated:
		s.Started, s.State, s.Batch = e.Time, job.StatePreflight, e.Batch
		if e.Spec != nil {
			s.Name, s.Ranks, s.elastic = e.Spec.Name, e.Spec.Ranks, e.Spec.MinRanks > 0
		}
	case job.KindPlaced:
		if e.Attempt > 0 && e.Placement != nil {
			s.Ranks = len(e.Placement.Ranks)
		}
	case job.KindState:
		s.State = e.State
	case job.KindProgress:
		if e.Attempt < s.Attempts || e.Attempt == 0 || e.Progress == nil {
			break
		}
		s.Step = max(s.Step, e.Progress.At())
		if s.State != job.StateStopping {
			s.State = job.StateRunning // the event that has begun the gang may be missing
		}
	case job.KindEnded:
		s.State, s.Ended, s.ExitCode = e.State, e.Time, e.ExitCode
	}
}
