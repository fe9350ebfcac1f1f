package launcher

import (
	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestAdoptWithout checks the hosts of an adopted gang whose agents are gone. Agents that may have ended because they
// had no controller are reported. An agent whose host was booted since then is not.
func TestAdoptWithout(t *testing.T) {
	for _, test := range []struct {
		name                   string
		link                   agents.Link
		says                   string
		endedWithoutController bool
	}{
		{"own machine", agents.Link{Local: true}, "ended with the controller", true},
		{"ended", agents.Link{}, "had no contact for too long", true},
		{"started anew", agents.Link{Restarted: true}, "was started anew", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := New(Options{Dialer: linked{test.link}})
			defer l.Close()
			a := job.Attempt{Number: 1, Adopt: true, Placement: job.Placement{
				Hosts: []job.Host{{Name: "h1"}}, Ranks: []job.Rank{{Rank: 0, Host: "h1"}},
			}}
			o, err := l.Run(t.Context(), a, func(job.Event) {})
			if err != nil || len(o.Exits) != 1 || o.Exits[0].Status != job.Lost || !strings.Contains(o.Exits[0].Text, test.says) {
				t.Fatalf("got %+v, %v; want a rank that is lost, for %q", o, err, test.says)
			}
			if got := slices.Contains(o.AgentsEnded, "h1"); got != test.endedWithoutController {
				t.Errorf("ended without a controller: got %v, want %v", o.AgentsEnded, test.endedWithoutController)
			}
		})
	}
}

// linked is a Dialer whose links have some properties of the given Link.
type linked struct{ agents.Link }

func (d linked) Dial(context.Context, string) (agents.Link, error) {
	var link agents.Link
	link.Conn, _, link.End = agentstest.Serve(talker{fakeHost: fakeHost{fakeHosts: &fakeHosts{}}})
	link.Local, link.Restarted = d.Local, d.Restarted
	return link, nil
}

// refusing is a Dialer that refuses every connection.
type refusing struct{}

func (refusing) Dial(context.Context, string) (agents.Link, error) {
	return agents.Link{}, errors.New("user was not let in")
}

// TestAdoptUnreached checks that a host that cannot be reached at a takeover is reported as not reached. The reason
// may be that this side was not allowed to log in.
func TestAdoptUnreached(t *testing.T) {
	l := New(Options{Dialer: refusing{}})
	defer l.cancel()
	l.begun = l.begun.Add(-time.Hour) // the agents that the earlier controller left have ended by now
	o, err := l.Run(t.Context(), job.Attempt{Number: 1, Adopt: true, Placement: job.Placement{
		Hosts: []job.Host{{Name: "h1"}}, Ranks: []job.Rank{{Rank: 0, Host: "h1"}},
	}}, func(job.Event) {})
	const says = "user was not let in, when the run was taken over"
	if err != nil || len(o.Exits) != 1 || o.Exits[0].Status != job.Lost || o.Exits[0].Text != says || o.Exits[0].Reason != job.ReasonNotReached || len(o.AgentsEnded) > 0 {
		t.Errorf("got %+v, %v; want a rank that is lost: %s", o, err, says)
	}
}
