package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/launcher"
)

// Times of a line that is broken or silent.
const (
	// retrySilent is after how much silence a second connection is tried beside the
	// one that may be dead.
	retrySilent = 2500 * time.Millisecond
	// retryFirst and retryMost bound the wait between two tries; it doubles.
	retryFirst, retryMost = 100 * time.Millisecond, time.Second
	// retryEvery is after how long another try is made beside one that has not ended,
	// retries how many there are at once, and retryLimit bounds each of them.
	retryEvery = 3 * time.Second
	retries    = 3
	retryLimit = 12 * time.Second
)

// Why a stream ends whose agent is no more.
var (
	errHostGone = errors.New("the host has closed its connections and does not answer any more")
	errHostAnew = fmt.Errorf("%w, and its agent is gone", launcher.ErrAnew)
)

// keep has the stream carried until it ends: by first, and whenever that breaks or
// falls silent by another connection. A try that takes long goes on beside those
// that follow it: where the line was cut, a new connection is sooner there, and
// where the host has much to do, the old one.
func (g *agent) keep(first *carrier) {
	ctx, cancel := context.WithCancel(g.life)
	carried := make(chan bool) // whether the host has hung up
	tried := make(chan try)
	on, trying := 0, 0
	carry := func(c *carrier) {
		on++
		if _, direct := c.client.line.Conn.(*net.TCPConn); !direct {
			g.far = true
		}
		go func() { // Carry ends with ctx at the latest
			if g.stream.Carry(ctx, c) == nil { // the last thing that an agent does
				g.die()
			}
			left := c.hungUp()
			_ = c.Close()
			carried <- left
		}()
	}
	var silent <-chan struct{} // closed when a host that has hung up does not answer
	stopAsking := func() {}
	defer func() {
		cancel()
		stopAsking()
		for on+trying > 0 {
			select {
			case <-carried:
				on--
				g.left = time.Now()
			case t := <-tried:
				trying--
				t.close()
			}
		}
	}()
	carry(first)
	look := time.NewTicker(retryFirst)
	defer look.Stop()
	var vigil launcher.Vigil // looked at with each tick at the latest
	well := func() bool { return vigil.Silence(g.heard()) < retrySilent && on > 0 }
	wait, next := time.Duration(0), time.Now()
	for !g.over() {
		if !well() && on < 2 && trying < retries && !time.Now().Before(next) {
			trying++
			next = time.Now().Add(retryEvery)
			go func() { // join ends with ctx at the latest
				limited, cancel := context.WithTimeout(ctx, retryLimit)
				defer cancel()
				tried <- g.join(limited)
			}()
		}
		select {
		case <-ctx.Done():
			return
		case left := <-carried:
			g.left = time.Now()
			if on--; on > 0 {
				continue
			}
			if left && silent == nil && !g.over() {
				silent, stopAsking = askUntilSilent(ctx, first.client.address())
			}
			wait, next = 0, time.Now()
		case <-silent:
			g.give(errHostGone)
			g.stream.Abort(errHostGone)
			return
		case t := <-tried:
			trying--
			if !well() {
				g.give(t.err)
			}
			switch {
			case t.state == bridge.Gone:
				g.die()
				g.give(t.err)
				g.stream.Abort(t.err)
			case t.carrier != nil && !well():
				carry(t.carrier)
				stopAsking()
				wait, silent = 0, nil
			default:
				t.close()
				wait = min(max(2*wait, retryFirst), retryMost)
				next = time.Now().Add(wait)
			}
		case <-look.C:
		}
	}
}

// try is what has come of a try to reach an agent again.
type try struct {
	carrier *carrier // nil where there is none
	state   bridge.State
	err     error // why nobody was asked, or why the agent is gone; nil where another state was told
}

func (t try) close() {
	if t.carrier != nil {
		_ = t.carrier.Close()
	}
}

// join makes a new connection to the agent. A host that was started anew is one
// whose agent is gone.
func (g *agent) join(ctx context.Context) try {
	c, err := g.agents.Dialer.Dial(ctx, g.agents.Target(g.host))
	if err != nil {
		var unreached *DialError
		if errors.As(err, &unreached) && (unreached.Reason == DialTimeout || unreached.Reason == DialCancelled) {
			err = nil // its silence tells as much
		}
		return try{nil, bridge.Failed, err}
	}
	b, said, err := g.ask(ctx, c, "join")
	switch {
	case err != nil:
		said.state = bridge.Failed
	case said.state == bridge.Ready:
		return try{b, bridge.Ready, nil}
	case said.boot != g.at.Boot: // whatever a bridge finds there
		said.state, err = bridge.Gone, errHostAnew
	case said.state == bridge.Gone:
		err = launcher.ErrGone
	}
	_ = c.Close()
	return try{nil, said.state, err}
}
