package ssh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/bridge"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
)

// TestOutputOfKilledAgent: what an agent had taken before it was killed comes, though
// the line was cut by then, and nothing stays on the host.
func TestOutputOfKilledAgent(t *testing.T) {
	h := newHosts(t)
	hosts := []job.Host{{Name: "h1", Address: "127.0.0.1"}}
	l := launcher.New(launcher.Options{Dialer: h.agents(t, nil), Hosts: hosts, HostTimeout: 15 * time.Second, OrphanGrace: 20 * time.Second})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	// One rank that has ended, and one that has not; each says a lot.
	const script = `while [ ! -e "$0" ]; do sleep 0.02; done; seq 100000; [ "$RANK" = 0 ] || exec sleep 1000`
	a := job.Attempt{
		Run: "test", Number: 1, Command: []string{"sh", "-c", script, h.path("go")}, MPI: job.MPINone, LogDir: t.TempDir(), Workdir: h.dir,
		Placement: job.Placement{Hosts: hosts, Ranks: []job.Rank{{Rank: 0, Host: "h1", LocalSize: 2}, {Rank: 1, Host: "h1", LocalRank: 1, LocalSize: 2}}},
	}
	var want strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&want, i+1)
	}
	var notes []string
	started := make(chan struct{})
	over := make(chan job.Outcome)
	go func() {
		defer close(over)
		o, err := l.Run(t.Context(), a, func(e job.Event) {
			switch e.Kind {
			case job.KindAllStarted:
				close(started)
			case job.KindNote:
				notes = append(notes, e.Text)
			}
		})
		if err != nil {
			t.Error(err)
		}
		over <- o
	}()
	<-started
	h.proxy.set(true)
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	some(t, func() (ranks []int) {
		for rank := range 2 {
			text, _ := os.ReadFile(filepath.Join(h.left()[0], "logs/test/1", job.LogName(rank, "out")))
			if string(text) != want.String() {
				return nil
			}
			ranks = append(ranks, rank)
		}
		return ranks
	})
	some(t, func() []int { // the end of the first rank is seen there
		info, err := os.Stat(filepath.Join(h.left()[0], "logs/test/1", job.LogName(0, "out")))
		if err != nil || info.Mode().Perm() != bridge.Whole {
			return nil
		}
		return []int{0}
	})
	kill(t, some(t, func() []int { return h.processes()["agent"] }))
	h.proxy.set(false)
	if o := <-over; o.Good(2) {
		t.Errorf("it has ended well: %+v", o)
	}
	for rank := range 2 {
		if text, err := os.ReadFile(filepath.Join(a.LogDir, job.LogName(rank, "out"))); err != nil || string(text) != want.String() {
			t.Errorf("of rank %d there are %d bytes, %v, want %d", rank, len(text), err, want.Len())
		}
	}
	if cut := fmt.Sprintf("output breaks off, that of rank 1 on h1 after %d bytes: %s; nothing more of it is on h1", want.Len(), launcher.ErrGone); len(notes) != 1 || notes[0] != cut {
		t.Errorf("noted %q, want %q", notes, cut)
	}
	if left := h.left(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
