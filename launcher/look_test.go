package launcher

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
)

// TestLookLimit checks that the error names a host whose file system hangs, and what the agent was asked to look at.
// Other hosts may be used instead, but not if the host is the controller's own machine.
func TestLookLimit(t *testing.T) {
	ask := job.Survey{Command: []string{"train", "-v"}, Workdir: "/w", Inputs: []string{"a", "b", "c", "d", "e", "f"}, CheckpointDir: "/c"}
	for name, local := range map[string]bool{"far": false, "here": true} {
		synctest.Test(t, func(t *testing.T) {
			l := launch(t, &fakeHosts{local: local, stuck: map[string]string{"h2": "Survey"}})
			l.look = 3 * time.Second
			_, err := l.Survey(t.Context(), fourHosts(), ask)
			want := `survey host h2: h2 has not answered for 3s: it was to look at the directory "/w", the program "train", the input "a", the input "b", the input "c", the input "d", 2 more inputs and the checkpoint directory "/c"; a file system there may hang`
			if err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
			var late *LookError
			if !errors.As(err, &late) || late.Host != "h2" {
				t.Errorf("%s: %v is no LookError of h2", name, err)
			}
			if away := slices.Collect(maps.Keys(agents.Unreachable(err))); slices.Equal(away, []string{"h2"}) == local {
				t.Errorf("%s: not reached are %q", name, away)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := launch(t, &fakeHosts{stuck: map[string]string{"h1": "Library"}})
		l.look = 3 * time.Second
		o, err := l.Run(t.Context(), attempt(job.MPIAuto), func(job.Event) {})
		want := `h1 has not answered for 3s: it was to look at the program "true" in "" and the libraries that it needs`
		if err != nil || len(o.Exits) != 2 || o.Exits[0].Status != job.Lost || !strings.Contains(o.Exits[0].Text, want) {
			t.Errorf("got %+v, %v; want that h1 is lost: %s", o, err, want)
		}
	})
}

// TestLookCancelled checks that the reason for a cancellation is returned while an agent looks at files.
func TestLookCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := launch(t, &fakeHosts{stuck: map[string]string{"h2": "Survey"}})
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, enough)
		defer cancel()
		if _, err := l.Survey(ctx, fourHosts(), job.Survey{}); !errors.Is(err, enough) || agents.Unreachable(err) != nil {
			t.Errorf("got %v, want %v", err, enough)
		}
	})
}

func TestSurveyed(t *testing.T) {
	for want, ask := range map[string]job.Survey{
		`the directory "/w"`:                                        {Workdir: "/w"},
		`the directory "/w" and the program "x"`:                    {Workdir: "/w", Command: []string{"x"}},
		`the directory "/w", the program "x" and the input "/in a"`: {Workdir: "/w", Command: []string{"x", "y"}, Inputs: []string{"/in a"}},
	} {
		if got := surveyed(ask); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
