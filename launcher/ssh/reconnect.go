package ssh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/runclock"
)

// Times of a connection that is broken or silent.
const (
	// retrySilent is the silence after which a second connection is tried, beside the one that
	// may be dead.
	retrySilent = 2500 * time.Millisecond
	// retryFirst and retryMost limit the wait between two tries, which doubles each time.
	retryFirst, retryMost = 100 * time.Millisecond, time.Second
	// A try that has not ended after retryEvery does not hold up the next one. There are at most
	// retries tries at a time, and each has the time limit retryLimit.
	retryEvery = 3 * time.Second
	retries    = 3
	retryLimit = 12 * time.Second
)

// Why a stream ends whose agent is gone.
var (
	errHostAnew = fmt.Errorf("%w, and its agent is gone", agents.ErrRestarted)
)

// maintainer keeps the stream to an agent on a connection. Only one goroutine uses it.
type maintainer struct {
	*agent
	ctx     context.Context
	silence runclock.Silence // measured at least once every retryFirst

	carrying int       // connections that carry the stream
	carried  chan bool // one of these has ended: whether the host closed it

	trying int // tries under way
	tried  chan try
	wait   time.Duration // between the last try and the next
	next   time.Time     // not before this is the next try

	first     *Conn
	probing   <-chan struct{} // closed when the host does not answer the probe; nil if there is none
	stopProbe func()
}

// maintain keeps the stream on a connection until the stream or g.life ends. It begins with first.
// When a connection breaks or falls silent, it makes another. If a try to connect takes long,
// maintain starts the next one beside it, and uses the one that succeeds first.
func (g *agent) maintain(first *bridgeProcess) {
	ctx, cancel := context.WithCancel(g.life)
	m := &maintainer{
		agent: g, ctx: ctx, carried: make(chan bool), tried: make(chan try),
		next: time.Now(), first: first.conn, stopProbe: func() {},
	}
	defer func() {
		cancel()
		m.stopProbe()
		m.drain()
	}()
	m.carry(first)
	look := time.NewTicker(retryFirst)
	defer look.Stop()
	for !g.isGone() {
		if !m.healthy() && m.carrying < 2 && m.trying < retries && !time.Now().Before(m.next) {
			m.try()
		}
		select {
		case <-ctx.Done():
			return
		case closed := <-m.carried:
			m.connectionEnded(closed)
		case <-m.probing:
			g.setTrouble(agents.ErrHostGone)
			g.stream.Abort(agents.ErrHostGone)
			return
		case t := <-m.tried:
			m.tryEnded(t)
		case <-look.C:
		}
	}
}

// drain waits for all connections and tries. The context has ended.
func (m *maintainer) drain() {
	for m.carrying+m.trying > 0 {
		select {
		case <-m.carried:
			m.carrying--
			m.left = time.Now()
		case t := <-m.tried:
			m.trying--
			t.close()
		}
	}
}

// healthy reports whether the agent has sent something recently.
func (m *maintainer) healthy() bool {
	return m.silence.Since(m.lastContact()) < retrySilent && m.carrying > 0
}

// carry puts the stream on a connection.
func (m *maintainer) carry(b *bridgeProcess) {
	m.carrying++
	if b.conn.Relayed {
		m.relayed = true
	}
	go func() { // Carry returns when the context ends
		if m.stream.Carry(m.ctx, b) == nil { // the agent ends the stream last of all
			m.setGone()
		}
		closed := b.closedByHost()
		_ = b.Close()
		m.carried <- closed
	}()
}

// connectionEnded handles the end of a connection that carried the stream. If the host closed it,
// and it was the last one, the host is probed: a host that shuts down closes its connections.
func (m *maintainer) connectionEnded(closedByHost bool) {
	m.left = time.Now()
	if m.carrying--; m.carrying > 0 {
		return
	}
	if closedByHost && m.probing == nil && !m.isGone() {
		m.probing, m.stopProbe = probe(m.ctx, m.first.Address)
	}
	m.wait, m.next = 0, time.Now()
}

// try starts a try to connect again.
func (m *maintainer) try() {
	m.trying++
	m.next = time.Now().Add(retryEvery)
	go func() { // join returns when the context ends
		limited, cancel := context.WithTimeout(m.ctx, retryLimit)
		defer cancel()
		m.tried <- m.join(limited)
	}()
}

// tryEnded handles the result of a try.
func (m *maintainer) tryEnded(t try) {
	m.trying--
	if !m.healthy() {
		m.setTrouble(t.err)
	}
	switch {
	case t.state == bridge.Gone:
		m.setGone()
		m.setTrouble(t.err)
		m.stream.Abort(t.err)
	case t.bridge != nil && !m.healthy():
		m.carry(t.bridge)
		m.stopProbe()
		m.wait, m.probing = 0, nil
	default:
		t.close()
		m.wait = min(max(2*m.wait, retryFirst), retryMost)
		m.next = time.Now().Add(m.wait)
	}
}

// try is the result of a try to connect to an agent again.
type try struct {
	bridge *bridgeProcess // nil if there is no connection
	state  bridge.State
	err    error // why the host was not reached, or why the agent is gone; nil for other states
}

func (t try) close() {
	if t.bridge != nil {
		_ = t.bridge.Close()
	}
}

// join makes a new connection to the agent. If the host has been booted since the agent was
// started, the agent is gone.
func (g *agent) join(ctx context.Context) try {
	c, err := g.agents.Dialer.Dial(ctx, g.host)
	if err != nil {
		if isTimeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			err = nil // the silence of the host says as much
		}
		return try{nil, bridge.Failed, err}
	}
	b, said, err := g.ask(ctx, c, "join")
	switch {
	case err != nil:
		said.state = bridge.Failed
	case said.state == bridge.Ready:
		return try{b, bridge.Ready, nil}
	case said.boot != g.at.Boot: // whatever the bridge finds there
		said.state, err = bridge.Gone, errHostAnew
	case said.state == bridge.Gone:
		err = agents.ErrGone
	}
	_ = c.Close()
	return try{nil, said.state, err}
}
