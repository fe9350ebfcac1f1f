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

// Limits for a connection that is broken or silent.
const (
	// retrySilent is the silence after which maintain tries to make a second connection, although the first one may
	// still work.
	retrySilent = 2500 * time.Millisecond
	// retryFirst and retryMost limit the wait between two tries. The wait doubles after each try.
	retryFirst, retryMost = 100 * time.Millisecond, time.Second
	// If a try has not ended after retryEvery, the next try starts beside it. There are at most retries tries at the
	// same time. Each try has the time limit retryLimit.
	retryEvery = 3 * time.Second
	retries    = 3
	retryLimit = 12 * time.Second
)

// Errors that end the stream to an agent that is gone.
var (
	errHostAnew = fmt.Errorf("%w, and its agent is gone", agents.ErrRestarted)
)

// maintainer keeps the stream to an agent on a connection. Only one goroutine uses the maintainer.
type maintainer struct {
	*agent
	ctx     context.Context
	silence runclock.Silence // measured at least once every retryFirst

	carrying int       // number of connections that carry the stream
	carried  chan bool // a connection has ended; the value says whether the host closed it

	trying int // number of tries that have not ended
	tried  chan try
	wait   time.Duration // wait between the last try and the next try
	next   time.Time     // the earliest time of the next try

	first     *Conn
	probing   <-chan struct{} // closed when the host does not answer the probe; nil if there is no probe
	stopProbe func()
}

// maintain keeps the stream on a connection until the stream ends or g.life ends. first is the first connection. When a
// connection breaks or falls silent, maintain makes another connection. If a try to connect takes long, maintain starts
// the next try beside it, and uses the connection that is ready first.
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

// drain waits for the end of all connections and tries. m.ctx has ended.
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

// carry makes a connection carry the stream.
func (m *maintainer) carry(b *bridgeProcess) {
	m.carrying++
	if b.conn.Relayed {
		m.relayed = true
	}
	go func() { // Carry returns when the context ends
		if m.stream.Carry(m.ctx, b) == nil { // the agent is the last to end the stream
			m.setGone()
		}
		closed := b.closedByHost()
		_ = b.Close()
		m.carried <- closed
	}()
}

// connectionEnded handles the end of a connection that carried the stream. If it was the last connection, and the host
// closed it, connectionEnded starts to probe the host, because a host that shuts down closes its connections.
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
			err = nil // the silence of the host says the same
		}
		return try{nil, bridge.Failed, err}
	}
	b, said, err := g.ask(ctx, c, "join")
	switch {
	case err != nil:
		said.state = bridge.Failed
	case said.state == bridge.Ready:
		return try{b, bridge.Ready, nil}
	case said.boot != g.at.Boot: // the agent is gone, whatever the bridge finds there
		said.state, err = bridge.Gone, errHostAnew
	case said.state == bridge.Gone:
		err = agents.ErrGone
	}
	_ = c.Close()
	return try{nil, said.state, err}
}
