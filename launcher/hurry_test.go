package launcher

import (
	"context"
	"testing"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"github.com/gangrun/gangrun/internal/job"
)

// stuckDialer is a Dialer that does not find the agent of a host before ctx ends.
type stuckDialer struct{ dialling chan struct{} }

func (d stuckDialer) Dial(ctx context.Context, _ string) (agents.Link, error) {
	close(d.dialling)
	<-ctx.Done()
	return agents.Link{}, context.Cause(ctx)
}

// TestHurryWhileAdopting checks that Hurry stops the search for the gang of an earlier controller.
func TestHurryWhileAdopting(t *testing.T) {
	d := stuckDialer{make(chan struct{})}
	l := New(Options{Dialer: d, OrphanGrace: time.Hour})
	defer func() { _ = l.Close() }()
	go func() { <-d.dialling; l.Hurry() }()
	a := job.Attempt{Number: 1, Adopt: true, Placement: job.Placement{
		Hosts: []job.Host{{Name: "h1"}}, Ranks: []job.Rank{{Rank: 0, Host: "h1"}},
	}}
	var o job.Outcome
	err := agentstest.Soon(t, func() (err error) {
		o, err = l.Run(t.Context(), a, func(job.Event) {})
		return err
	})
	if err != nil || len(o.Exits) != 1 || o.Exits[0].Status != job.Lost || len(o.Unreaped) != 1 {
		t.Errorf("got %+v, %v; want a rank that is lost, and unreaped", o, err)
	}
}
