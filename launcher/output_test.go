package launcher

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// heirs are talkers that an earlier controller has started. They send the output of their ranks from the requested
// offset on.
type heirs struct {
	talkers
	printed string
}

type heir struct {
	talker
	of *heirs
}

func (h *heirs) Dial(_ context.Context, host string) (agents.Link, error) {
	link, err := dialFake(heir{talker{fakeHost{fakeHosts: &h.fakeHosts, name: host}, &h.talkers}, h}, false)
	link.Held = true
	return link, err
}

// Gang ends when all other goroutines are blocked.
func (h heir) Gang(stream wire.Agent_GangServer) error {
	time.Sleep(time.Second)
	return h.talker.Gang(stream)
}

func (h heir) Output(r *wire.OutputRequest, to wire.Agent_OutputServer) error {
	return say(h.name, to, h.of.printed[r.Out[0]:], 2)
}

// TestShowAdopted checks that a new controller shows what a gang has printed while there was no controller, however
// fast this gets into the log. It must not show again what was shown before.
func TestShowAdopted(t *testing.T) {
	for range 20 { // it is left to chance which of the two is first
		synctest.Test(t, func(t *testing.T) {
			shown := ""
			l := New(Options{Dialer: &heirs{printed: "before\nmeanwhile\n"}, Hosts: fourHosts()[:1], HostTimeout: time.Minute,
				Output: func(o job.Output) { shown += string(o.Data) }})
			a := job.Attempt{Run: "r", Number: 1, Adopt: true, Show: job.OutputAll, LogDir: t.TempDir(), MPI: job.MPINone,
				Placement: job.Placement{Hosts: fourHosts()[:1], Ranks: []job.Rank{{Rank: 0, Host: "h1"}}}}
			log := filepath.Join(a.LogDir, job.LogName(0, "out"))
			if err := os.WriteFile(log, []byte("before\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Run(t.Context(), a, func(job.Event) {}); err != nil {
				t.Fatal(err)
			}
			if err := l.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(log); err != nil || string(text) != "before\nmeanwhile\n" {
				t.Errorf("the log holds %q, %v", text, err)
			}
			if shown != "meanwhile\n" {
				t.Errorf("shown was %q", shown)
			}
		})
	}
}
