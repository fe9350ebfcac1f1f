package runreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// Status is what gangrun shows of a run on the terminal while the run goes on.
type Status struct {
	State   job.State
	Reason  string // what the run waits for; empty if unknown
	Check   string // what the preflight is doing
	Attempt int    // number of the newest attempt; 0 before the first
	Ranks   int
	Alive   int // ranks that have started and not ended
	Step    int64
	Total   int64 // 0 if unknown
	Loss    *float64
	LossIs  string        // nan, inf or -inf if the loss is not finite
	Elapsed time.Duration // the time since the run was created
}

// Status returns the run's status at the time now.
func (f *Folder) Status(now time.Time) Status {
	r := f.report
	s := Status{State: r.State, Reason: r.Reason, Ranks: r.Ranks, Alive: len(f.alive), Step: -1}
	if r.State == job.StatePreflight {
		s.Check = f.trial.report().checking()
	}
	if r.Ended != nil {
		now = *r.Ended
	}
	if r.Started != nil {
		s.Elapsed = max(0, now.Sub(*r.Started))
	}
	if a := r.Last(); a != nil {
		s.Attempt, s.Step, s.Total, s.Loss, s.LossIs = a.Number, a.Step, a.Total, a.Loss, a.LossIs
	}
	return s
}

// String returns the status as one line, as in
// "running, attempt 2, step 40/500, loss 0.3121, 4 of 4 ranks, 1m2s".
func (s Status) String() string {
	words := []string{string(s.State)}
	if s.Check != "" {
		words = append(words, text.Printable(s.Check))
	}
	if s.Attempt > 0 {
		words = append(words, fmt.Sprintf("attempt %d", s.Attempt))
	}
	words = append(words, progress(s.Step, s.Total, s.Loss, s.LossIs)...)
	if s.State == job.StateLaunching || s.State == job.StateRunning || s.State == job.StateStopping {
		words = append(words, fmt.Sprintf("%d of %d ranks", s.Alive, s.Ranks))
	}
	if s.State == job.StateWaiting && s.Reason != "" {
		words = append(words, text.Printable(s.Reason))
	}
	return strings.Join(append(words, short(s.Elapsed)), ", ")
}

// progress returns words about how far a gang has got. It returns nothing if the gang has printed no progress.
func progress(step, total int64, loss *float64, lossIs string) []string {
	var words []string
	if step >= 0 {
		word := fmt.Sprintf("step %d", step)
		if total > 0 {
			word += fmt.Sprintf("/%d", total)
		}
		words = append(words, word)
	}
	switch {
	case lossIs != "":
		words = append(words, "loss "+lossIs)
	case loss != nil:
		words = append(words, fmt.Sprintf("loss %.4g", *loss))
	}
	return words
}

// short formats a duration for people. It shows tenths of a second below ten seconds, and otherwise whole
// seconds.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
