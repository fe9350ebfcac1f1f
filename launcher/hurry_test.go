package launcher

import (
	"context"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
)

// soon calls f, which must return within half a minute: far sooner than an agent
// may be waited for here.
func soon(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for a host that is silent")
		return nil
	}
}

// stuckDialer is of a host whose agent cannot be found before ctx ends.
type stuckDialer struct{ dialling chan struct{} }

func (d stuckDialer) Dial(ctx context.Context, _ string) (agents.Link, error) {
	close(d.dialling)
	<-ctx.Done()
	return agents.Link{}, context.Cause(ctx)
}

// Who looks for a gang of an earlier controller can be told to stop.
func TestHurryWhileAdopting(t *testing.T) {
	d := stuckDialer{make(chan struct{})}
	l := New(Options{Dialer: d, OrphanGrace: time.Hour})
	defer func() { _ = l.Close() }()
	go func() { <-d.dialling; l.Hurry() }()
	a := job.Attempt{Number: 1, Adopt: true, Placement: job.Placement{
		Hosts: []job.Host{{Name: "h1"}}, Ranks: []job.Rank{{Rank: 0, Host: "h1"}},
	}}
	var o job.Outcome
	err := soon(t, func() (err error) {
		o, err = l.Run(t.Context(), a, func(job.Event) {})
		return err
	})
	if err != nil || len(o.Exits) != 1 || o.Exits[0].Status != job.Lost || len(o.Unreaped) != 1 {
		t.Errorf("got %+v, %v; want a rank that is lost, and unreaped", o, err)
	}
}
