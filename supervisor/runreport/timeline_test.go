package runreport

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gangrun/gangrun/internal/job"
)

// at gives an event a time, in seconds after a beginning.
func at(s float64, e job.Event) job.Event {
	e.Time = now.Add(time.Duration(s * float64(time.Second)))
	return e
}

func inState(s job.State) job.Event { return job.Event{Kind: job.KindState, State: s} }

// sum returns the sum of all phases.
func (s Seconds) sum() float64 {
	return s.Preflight + s.Waiting + s.Launching + s.Running + s.Backoff
}

func TestSeconds(t *testing.T) {
	created, ended := job.Event{Kind: job.KindCreated}, job.Event{Kind: job.KindEnded, State: job.StateFailed}
	progress := job.Event{Kind: job.KindProgress, Attempt: 1, Progress: &job.Progress{Step: 1}}
	note := job.Event{Kind: job.KindNote}
	for _, test := range []struct {
		name   string
		events []job.Event
		want   Seconds
	}{
		{"the controller was stopped, and hears late what happened meanwhile", []job.Event{
			at(0, created), at(0, inState(job.StateRunning)), at(7, note), at(2, progress), at(7.5, note), at(3, progress), at(8, ended),
		}, Seconds{Running: 8}},
		{"a host's clock is ahead", []job.Event{
			at(0, created), at(0, inState(job.StateWaiting)), at(1, inState(job.StateRunning)), at(3600, progress), at(4, ended),
		}, Seconds{Waiting: 1, Running: 3}},
		{"a host's clock is behind", []job.Event{
			at(0, created), at(1, inState(job.StateRunning)), at(-3600, progress), at(4, ended),
		}, Seconds{Running: 3}},
		{"the controller's clock was set back, and the run did not end", []job.Event{
			at(0, inState(job.StateWaiting)), at(5, note), at(-100, note), at(-98, note),
		}, Seconds{Waiting: 5}},
		{"the controller's clock was set back while it waited", []job.Event{
			at(0, created), at(0, inState(job.StateWaiting)), at(10, inState(job.StateLaunching)), at(4, inState(job.StateRunning)), at(12, ended),
		}, Seconds{Waiting: 10, Running: 2}},
		{"the run ended, by a clock that was set back, before it was placed", []job.Event{
			at(0, created), at(0, inState(job.StateWaiting)), at(10, inState(job.StateRunning)), at(4, ended),
		}, Seconds{Waiting: 4}},
		{"the run ended, by a clock that was set back, before it began", []job.Event{
			at(0, created), at(0, inState(job.StateWaiting)), at(10, inState(job.StateRunning)), at(-4, ended),
		}, Seconds{}},
	} {
		if got := Fold(test.events).Seconds; got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestSecondsAddUp: whatever the order of the times in a journal, the phases of a run do not last longer than
// the run.
func TestSecondsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []job.Event{
			inState(job.StatePreflight), inState(job.StateWaiting), inState(job.StateLaunching), inState(job.StateRunning), inState(job.StateStopping),
			{Kind: job.KindNote}, {Kind: job.KindStarted, Attempt: 1}, {Kind: job.KindProgress, Attempt: 1, Progress: &job.Progress{}},
			{Kind: job.KindAttempt, Attempt: 1}, {Kind: job.KindOutcome, Attempt: 1}, {Kind: job.KindAttached},
			{Kind: job.KindVerdict, Attempt: 1, Verdict: &job.Verdict{Action: job.Restart}},
		}
		seconds := rapid.Float64Range(-1000, 1000)
		began := seconds.Draw(t, "began")
		events := []job.Event{at(began, job.Event{Kind: job.KindCreated})}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			events = append(events, at(seconds.Draw(t, "time"), rapid.SampledFrom(kinds).Draw(t, "event")))
		}
		end := seconds.Draw(t, "ended")
		r := Fold(append(events, at(end, job.Event{Kind: job.KindEnded, State: job.StateFailed})))
		if most := max(0, end-began) + 1e-6; r.Seconds.sum() > most {
			t.Fatalf("%+v are more than %v", r.Seconds, most)
		}
		if s := r.Seconds; min(s.Preflight, s.Waiting, s.Launching, s.Running, s.Backoff) < 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func TestPhases(t *testing.T) {
	var f Folder
	for _, e := range []job.Event{
		at(0, job.Event{Kind: job.KindCreated}), at(0, inState(job.StatePreflight)), at(2, inState(job.StateWaiting)), at(2, inState(job.StateLaunching)), at(3, inState(job.StateRunning)),
		at(5, inState(job.StateStopping)), at(6, job.Event{Kind: job.KindVerdict, Attempt: 1, Verdict: &job.Verdict{Action: job.Restart}}), at(9, inState(job.StateWaiting)), at(12, job.Event{Kind: job.KindNote}),
	} {
		f.Add(e)
	}
	var have []string
	for _, p := range f.Phases() {
		have = append(have, fmt.Sprintf("%s %g-%g", p.Name, p.From.Sub(now).Seconds(), p.To.Sub(now).Seconds()))
	}
	if want := []string{"preflight 0-2", "launching 2-3", "running 3-6", "back-off 6-9", "waiting 9-12"}; !slices.Equal(have, want) {
		t.Errorf("phases %q, want %q", have, want)
	}
}
