package launcher

import (
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/lifecycle"
)

// TestToldInTime checks that a report of a host counts before a decision that assumes that there is no report. Both
// may be due at the same time because gangrun itself got no CPU time.
func TestToldInTime(t *testing.T) {
	failed := job.Exit{Rank: 1, Host: "h1", Status: job.Exited, Code: 3}
	for name, c := range map[string]struct {
		set  func(*running, <-chan time.Time)
		stop string // why the gang was ended
	}{
		"its ranks' end, and the grace period is over": {
			set: func(g *running, now <-chan time.Time) { g.phase, g.end.overdue = lifecycle.Ending, now },
		},
		"a failure, and that of another rank looks like an echo": {
			set: func(g *running, now <-chan time.Time) {
				g.settling.over, g.settling.failed = now, job.Exit{Rank: 0, Host: "h1", Status: job.Exited, Code: 1}
			},
			stop: failed.String(),
		},
		"a failure, and Open MPI ends the gang": {
			set:  func(g *running, now <-chan time.Time) { g.wiring.openmpi.judging = now },
			stop: failed.String(),
		},
	} {
		for range 50 { // it is left to chance which of the two is first
			stop := ""
			n := &node{agent: &agents.Agent{Host: "h1"}, ranks: []job.Rank{{Rank: 1, Host: "h1"}}}
			g := &running{nodes: []*node{n}, tally: tally{seen: map[int]bool{}, listening: 1}, wiring: newWiring(job.MPINone, false, nil), reports: make(chan report, 2),
				drop: func(*agents.Agent) error { return nil },
				emitter: newEmitter(func(e job.Event) {
					if e.Kind == job.KindStop {
						stop = e.Text
					}
				})}
			now := make(chan time.Time, 1)
			now <- time.Now()
			c.set(g, now)
			g.reports <- report{node: n, events: []job.Event{{Kind: job.KindExit, Exit: &failed}}, done: &wire.Done{}}
			g.loop(nil, nil, orders{})
			g.emitter.close()
			if len(g.outcome.Exits) != 1 || g.outcome.Exits[0] != failed || stop != c.stop {
				t.Fatalf("%s: %+v, ended because of %q, want %q", name, g.outcome.Exits, stop, c.stop)
			}
		}
	}
}

// TestNotesOfAgents checks that equal notes of several hosts and attempts are passed on once, with the host that was
// first. Notes of a trial do not count.
func TestNotesOfAgents(t *testing.T) {
	noted := map[string]bool{}
	var got []string
	for number := range 3 {
		g := &running{attempt: job.Attempt{Number: number}, noted: noted, emitter: newEmitter(func(e job.Event) {
			if e.Attempt > 0 {
				got = append(got, e.Text)
			}
		})}
		for _, e := range []job.Event{{Host: "h2", Text: "one"}, {Host: "h1", Text: "one"}, {Host: "h1", Text: "two"}} {
			e.Kind = job.KindNote
			g.event(e)
		}
		g.emitter.close()
	}
	if want := []string{"on h2: one", "on h1: two"}; !slices.Equal(got, want) {
		t.Errorf("passed on were %q, want %q", got, want)
	}
}
