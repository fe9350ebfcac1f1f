package gang

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
)

// TestSooner: a second request to end never extends the grace period.
func TestSooner(t *testing.T) {
	before := time.Now()
	first := sooner(time.Time{}, time.Hour)
	if first.Before(before.Add(time.Hour)) || first.After(time.Now().Add(time.Hour)) {
		t.Errorf("from %s on an hour lasts until %s", before, first)
	}
	if at := sooner(first, 2*time.Hour); !at.Equal(first) {
		t.Errorf("until %s with more time, want %s as before", at, first)
	}
	if at := sooner(first, time.Minute); !at.Before(first) || at.Before(before.Add(time.Minute)) {
		t.Errorf("until %s with less time, want a minute from %s on", at, before)
	}
}

// TestUnreaped checks which ranks are reported when a descendant of a rank is left that SIGKILL has not ended.
func TestUnreaped(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	ended := make(chan struct{})
	close(ended)
	rank := func(number int, status unix.WaitStatus) *Rank {
		r := &Rank{number: number}
		r.child.Store(&process.Child{Exited: ended, Status: status})
		return r
	}
	g := &Gang{Config: Config{Children: processtest.New(t)}, ranks: []*Rank{rank(2, 0), rank(3, 9), rank(4, 1)}}
	if got := g.unreaped(); got != nil {
		t.Errorf("without processes, got %v", got)
	}
	if _, err := processtest.Shell(g.Children.Start, "sleep 300", nil); err != nil {
		t.Fatal(err)
	}
	if got := g.unreaped(); !slices.Equal(got, []int32{3}) {
		t.Errorf("got %v, want rank 3", got)
	}
	g.ranks = g.ranks[:1]
	if got := g.unreaped(); got != nil {
		t.Errorf("of a rank that ended well, got %v", got)
	}
}
