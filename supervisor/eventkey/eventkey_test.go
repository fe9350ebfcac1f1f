package eventkey

import (
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestOf: reports of the same thing have the same key, whatever their times; those of different things do not.
func TestOf(t *testing.T) {
	now := time.Now()
	exit := func(rank, code int, at time.Time) job.Event {
		return job.Event{Kind: job.KindExit, Time: at, Exit: &job.Exit{Rank: rank, Code: code, Status: job.Exited, Time: at}}
	}
	curve := func(sure bool) job.Event {
		return job.Event{Kind: job.KindCurve, Curve: &job.CurveVerdict{Kind: "plateau", Sure: sure}}
	}
	for name, c := range map[string]struct {
		a, b job.Event
		same bool
	}{
		"one exit":          {exit(1, 3, now), exit(1, 3, now.Add(time.Second)), true},
		"two exits":         {exit(1, 3, now), exit(2, 3, now), false},
		"an exit corrected": {exit(1, 3, now), exit(1, 4, now), false},
		"one order":         {job.Event{Kind: job.KindStop, Stop: job.StopOrder, Text: "a"}, job.Event{Kind: job.KindStop, Stop: job.StopOrder, Text: "b"}, true},
		"two failures":      {job.Event{Kind: job.KindStop, Stop: job.StopFailure, Text: "a"}, job.Event{Kind: job.KindStop, Stop: job.StopFailure, Text: "b"}, false},
		"a verdict":         {curve(true), curve(true), true},
		"one that is sure":  {curve(false), curve(true), false},
	} {
		if a, b := Of(c.a), Of(c.b); (a == b) != c.same || a == "" {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	if key := Of(job.Event{Kind: job.KindNote, Text: "a"}); key != "" {
		t.Errorf("a note has the key %q", key)
	}
}
