package agents

import (
	"github.com/gangrun/gangrun/launcher/agents/agentstest"

	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/wire"
)

// dozing is an agent whose clock is ahead. For the first few questions, it stands still for some time after it has
// read its clock.
type dozing struct {
	wire.UnimplementedAgentServer
	dozes []time.Duration
	asked *atomic.Int32
}

func (d dozing) Dial(context.Context, string) (Link, error) {
	conn, _, end := agentstest.Serve(d)
	return Link{Conn: conn, End: end}, nil
}

func (dozing) Hello(context.Context, *wire.HelloRequest) (*wire.HelloReply, error) {
	return &wire.HelloReply{}, nil
}

const dozingAhead = time.Hour

func (d dozing) Clock(context.Context, *wire.ClockRequest) (*wire.ClockReply, error) {
	now := time.Now().Add(dozingAhead)
	if n := int(d.asked.Add(1)); n <= len(d.dozes) {
		time.Sleep(d.dozes[n-1])
	}
	return &wire.ClockReply{Clock: now.UnixNano()}, nil
}

// TestClockIsAskedAgain checks that a clock is asked again if one of the sides stood still meanwhile, but not for
// ever. The most exact answer must count.
func TestClockIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		dozes        []time.Duration
		skew, within time.Duration
		asked        int32
	}{
		"at once":       {nil, dozingAhead, 0, 1},
		"a little late": {[]time.Duration{2 * clockWithin}, dozingAhead - clockWithin, clockWithin, 1},
		"stopped once":  {[]time.Duration{3 * time.Second}, dozingAhead, 0, 2},
		"slow":          {[]time.Duration{4 * time.Second, 2 * time.Second, time.Second, 2 * time.Second, 4 * time.Second}, dozingAhead - time.Second/2, time.Second / 2, clockAsks},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := dozing{dozes: c.dozes, asked: new(atomic.Int32)}
			p := New(Options{Dialer: d, HostTimeout: time.Hour})
			a, err := p.Get(t.Context(), "h1")
			if err != nil {
				t.Fatal(err)
			}
			if asked := d.asked.Load(); a.Clock.Skew != c.skew || a.Clock.Within != c.within || asked != c.asked {
				t.Errorf("%s: %s ahead, give or take %s, asked %d times; want %s, %s and %d", name, a.Clock.Skew, a.Clock.Within, asked, c.skew, c.within, c.asked)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
