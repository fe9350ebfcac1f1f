package launcher

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// keepers are talkers that can be told to keep their logs.
type keepers struct {
	talkers
	mu   sync.Mutex
	kept []string
}

type keeper struct {
	talker
	of *keepers
}

func (k *keepers) Dial(_ context.Context, host string) (agents.Link, error) {
	return dialFake(keeper{talker{fakeHost{fakeHosts: &k.fakeHosts, name: host}, &k.talkers}, k}, false)
}

func (k keeper) Keep(context.Context, *wire.KeepRequest) (*wire.KeepReply, error) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.of.kept = append(k.of.kept, k.name)
	return &wire.KeepReply{}, nil
}

// unwaited is the fault of rank 0 if gangrun no longer waits for its output, either.
const unwaited = "its output did not all arrive from h1: it was not waited for"

// TestCollectLimit checks that gangrun does not wait for ever for the output of an ended gang. If no output comes for
// the limit although the host answers, gangrun gives up, and the host keeps the output. gangrun must go on waiting for
// output that comes slowly.
func TestCollectLimit(t *testing.T) {
	const limit = 600 * time.Millisecond
	stalls := func(host string, to wire.Agent_OutputServer) error {
		if host != "h2" {
			return say(host, to, "hello\n", 2)
		}
		err := say(host, to, "hello\n", 0)
		<-to.Context().Done()
		return err
	}
	for name, c := range map[string]struct {
		output func(host string, to wire.Agent_OutputServer) error
		full   bool // the log of rank 1 is on a full disk
		hurry  bool // the user is in a hurry after the note about the disk
		note   []string
		fault  string
	}{
		"nothing comes": {
			output: stalls,
			note:   []string{"output from h2 is missing: only 6 bytes of rank 1 arrived: nothing more of it has come for 600ms; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1"},
			fault:  "its output did not all arrive from h2: nothing more of it has come for 600ms",
		},
		"full disk": {
			output: func(host string, to wire.Agent_OutputServer) error { return say(host, to, "hello\n", 2) }, full: true,
			note: []string{
				"a log cannot be written, its rank's output waits on its host: ", "no space left on device; free space in ",
				"output from h2 is missing: only 0 bytes of rank 1 arrived: it could not be written for 600ms: ", "; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1",
			},
			fault: "its output did not all arrive from h2: it could not be written for 600ms: ",
		},
		"full disk, and nobody waits": {
			output: func(host string, to wire.Agent_OutputServer) error { return say(host, to, "hello\n", 2) }, full: true, hurry: true,
			note:  []string{"output from h2 is missing: only 0 bytes of rank 1 arrived: it was not waited for; the rest is kept for 7 days on h2 in /tmp/agent/logs/r/1"},
			fault: "its output did not all arrive from h2: it was not waited for",
		},
		"slow": {
			output: func(host string, to wire.Agent_OutputServer) error {
				if host == "h2" {
					for range 20 { // takes twice the limit
						if err := say(host, to, "hello\n", 0); err != nil {
							return err
						}
						time.Sleep(limit / 10)
					}
				}
				return say(host, to, "hello\n", 2)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := fourHosts()[:2]
				k := &keepers{talkers: talkers{output: c.output}}
				l := New(Options{Dialer: k, Hosts: hosts, HostTimeout: time.Minute})
				l.logs.Limit = limit
				defer func() {
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}()
				a := job.Attempt{Run: "r", Number: 1, Command: []string{"true"}, LogDir: t.TempDir(), MPI: job.MPINone,
					Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Rank: 0, Host: "h1"}, {Rank: 1, Host: "h2"}}}}
				if c.full {
					if err := os.Symlink(fullFile(t), filepath.Join(a.LogDir, job.LogName(1, "out"))); err != nil {
						t.Fatal(err)
					}
				}
				if c.hurry {
					l.logs.Limit = time.Hour
				}
				var mu sync.Mutex
				var notes []string
				exits, stuck := 0, false
				var o job.Outcome
				if err := agentstest.Soon(t, func() (err error) {
					o, err = l.Run(t.Context(), a, func(e job.Event) {
						mu.Lock()
						defer mu.Unlock()
						if e.Kind == job.KindNote {
							notes = append(notes, e.Text)
						}
						switch {
						case e.Kind == job.KindExit:
							exits++
						case strings.HasPrefix(e.Text, "a log cannot be written"):
							stuck = true
						}
						if c.hurry && stuck && exits == 2 { // gangrun does not end the ranks, because all have ended
							l.Hurry()
						}
					})
					return err
				}); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				said := strings.Join(notes, "\n")
				for _, want := range c.note {
					if !strings.Contains(said, want) {
						t.Errorf("noted %q, want %q", notes, want)
					}
				}
				wantKept := []string{"h2"}
				if c.fault == "" {
					wantKept = nil
				}
				if !slices.Equal(k.kept, wantKept) {
					t.Errorf("told to keep: %q, want %q", k.kept, wantKept)
				}
				for _, e := range o.Exits {
					if c.hurry && e.Rank == 0 && e.Fault == unwaited {
						continue // the output of rank 0 may not have come by then, either
					}
					if want := c.fault; e.Rank == 1 && (want == "" && e.Fault != "" || !strings.HasPrefix(e.Fault, want)) || e.Rank == 0 && e.Fault != "" {
						t.Errorf("%s, want the fault %q of rank 1", e, want)
					}
				}
				if c.fault == "" && !o.Good(2) {
					t.Errorf("it did not end well: %+v, %q", o, notes)
				}
			})
		})
	}
}

// TestAdoptTellsOfOutput checks that gangrun reports missing output, and where it may be, if the agent of a host is
// gone when a gang is adopted. On this machine, no output is missing.
func TestAdoptTellsOfOutput(t *testing.T) {
	for name, c := range map[string]struct {
		link agents.Link
		want string
	}{
		"here":         {link: agents.Link{Local: true}},
		"ended":        {agents.Link{}, "output from h1 is missing: only 9 bytes of rank 0 arrived: its agent was killed, or has ended because it had no controller; what is left of it is kept for 7 days on h1 in /tmp/gangrun-*/*/logs/r/1, if it is still there"},
		"started anew": {agents.Link{Restarted: true}, "output from h1 is missing: only 9 bytes of rank 0 arrived: the host was started anew; the rest may be lost, since h1 was started anew"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New(Options{Dialer: linked{c.link}})
			a := job.Attempt{Run: "r", Number: 1, Adopt: true, LogDir: t.TempDir(), Placement: job.Placement{
				Hosts: []job.Host{{Name: "h1"}}, Ranks: []job.Rank{{Rank: 0, Host: "h1"}},
			}}
			if err := os.WriteFile(filepath.Join(a.LogDir, job.LogName(0, "out")), []byte("some text"), 0o600); err != nil {
				t.Fatal(err)
			}
			var notes []string
			if _, err := l.Run(t.Context(), a, func(e job.Event) {
				if e.Kind == job.KindNote {
					notes = append(notes, e.Text)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(notes, "\n"); got != c.want {
				t.Errorf("%s: noted %q, want %q", name, got, c.want)
			}
		})
	}
}
