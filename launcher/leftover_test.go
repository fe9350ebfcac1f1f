package launcher

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// Leftovers implements wire.AgentServer.
func (h fakeHost) Leftovers(context.Context, *wire.LeftoversRequest) (*wire.LeftoversReply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.leftovers[h.name]
	if len(all) == 0 {
		return &wire.LeftoversReply{}, nil
	}
	if len(all) > 1 {
		h.leftovers[h.name] = all[1:]
	}
	return all[0], nil
}

// TestProveAlone checks that an attempt starts only when no process of an earlier attempt of its run is left. gangrun
// must name the processes for which it waits. If they do not end on a host, the attempt must not use that host.
func TestProveAlone(t *testing.T) {
	stuck := &wire.Leftover{Pid: 12, Name: []byte("python"), State: "D", Gang: "r/1"}
	others := &wire.Leftover{Pid: 13, Name: []byte("sh"), State: "D", Gang: "s/1"}
	for name, c := range map[string]struct {
		replies []*wire.LeftoversReply
		notes   []string // a part of each note
		took    time.Duration
		away    string
	}{
		"nothing is left": {},
		"some was ended": {
			replies: []*wire.LeftoversReply{{Ended: []*wire.Leftover{{Pid: 11, Name: []byte("sleep")}, {Pid: 12, Name: []byte("sh"), Gang: "r/1"}}}},
			notes:   []string{"h2: killed what was left of gangs whose agents and watchdogs had been killed: 2 processes: 11 (sleep), 12 (sh of r/1)"},
		},
		"one ends later": {
			replies: []*wire.LeftoversReply{{Living: []*wire.Leftover{stuck}}, {Living: []*wire.Leftover{stuck}}, {}},
			notes:   []string{"1 process: 12 (python of r/1, in an uninterruptible wait for a device or file system); attempt 2 waits up to 30s"},
			took:    2 * leftoverEvery,
		},
		"another run's does not": {
			replies: []*wire.LeftoversReply{{Living: []*wire.Leftover{others}}},
			notes:   []string{"h2: SIGKILL has not ended yet: 1 process: 13 (sh of s/1"},
		},
		"one never ends": {
			replies: []*wire.LeftoversReply{{Living: []*wire.Leftover{stuck, others}}},
			notes:   []string{"2 processes"},
			took:    leftoverLimit + leftoverEvery,
			away:    "on h2 processes of an earlier attempt do not end within 30s: 1 process: 12 (python of r/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHosts{leftovers: map[string][]*wire.LeftoversReply{"h2": c.replies}}
				l := launch(t, f)
				a := attempt(job.MPINone)
				a.Number = 2
				nodes, _, _, err := l.gather(t.Context(), &a)
				if err != nil {
					t.Fatal(err)
				}
				var notes []string
				begun := time.Now()
				err = proveAlone(t.Context(), a, nodes, func(e job.Event) { notes = append(notes, e.Text) })
				if took := time.Since(begun); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if !slices.EqualFunc(notes, c.notes, strings.Contains) {
					t.Errorf("notes %q, want %q", notes, c.notes)
				}
				away := agents.Unreachable(err)
				if (c.away == "") != (err == nil) || c.away != "" && (away["h2"] == nil || !strings.Contains(away["h2"].Error(), c.away)) {
					t.Errorf("error %v, away %v, want %q", err, away, c.away)
				}
			})
		})
	}
}
