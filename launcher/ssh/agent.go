package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/launcher"
)

// agent is one host's, from this side.
type agent struct {
	agents *Agents
	host   string
	at     job.Agent
	stream *resumable.Conn
	begun  time.Time // of keep

	life   context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing is carried any more

	mu    sync.Mutex
	dead  bool  // the agent is known to be gone, with its processes
	wrong error // why it cannot be reached, where that is known

	anew bool // the host was started anew since an earlier controller's agent
	// left is when the last carrier was given up: from then on the agent has heard
	// nothing, unless far says that a jump host, or a program, may still have passed
	// on what it held. Both are keep's, and of others once that has ended.
	left time.Time
	far  bool
}

func (g *agent) note(text string) {
	if g.agents.Note != nil {
		g.agents.Note(g.host, text)
	}
}

func (g *agent) heard() time.Time {
	if t := g.stream.Heard(); !t.IsZero() {
		return t
	}
	return g.begun
}

// over reports whether the stream has ended, so that nothing is to be carried.
func (g *agent) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead
}

func (g *agent) die() {
	g.mu.Lock()
	g.dead, g.wrong = true, cmp.Or(g.wrong, launcher.ErrGone)
	g.mu.Unlock()
}

// give notes why the agent cannot be reached; nil where it can.
func (g *agent) give(why error) {
	g.mu.Lock()
	g.wrong = why
	g.mu.Unlock()
}

// trouble is why the agent cannot be reached, nil where it can or nobody knows.
func (g *agent) trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}

// adopt finds the agent that an earlier controller has started; nil where there is
// none, or none any more. One that is ending is waited for.
func (g *agent) adopt(ctx context.Context, c *Client) (*carrier, error) {
	at, ok := g.agents.Held[g.host]
	if !ok {
		return nil, nil
	}
	g.at = at
	for {
		carrier, said, err := g.ask(ctx, c, "join")
		switch {
		case err != nil:
			return nil, err
		case said.state == bridge.Ready:
			g.at.Program = said.program // it may have been brought anew
			return carrier, nil
		case said.state != bridge.Ending || said.boot != at.Boot:
			g.anew = said.boot != at.Boot
			return nil, nil
		}
		_ = carrier.Session.Close() // and not the connection
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: the agent of the earlier controller is ending: %s", c.Peer(), said.words)
		}
	}
}

// ask has a bridge do what for the agent: by the program that has started it, or by this
// very one where that has gone, as when a home or /tmp is new after a boot.
func (g *agent) ask(ctx context.Context, c *Client, what string, more ...string) (*carrier, answer, error) {
	args := append([]string{"bridge", what, g.at.Token}, more...)
	carrier, said, err := g.bridge(ctx, c, runLine(g.at.Program, args...))
	var mute *noAnswer
	if errors.As(err, &mute) {
		return g.install(ctx, c, args...)
	}
	return carrier, said, err
}

// start starts the agent.
func (g *agent) start(ctx context.Context, c *Client) (*carrier, error) {
	carrier, said, err := g.install(ctx, c, "bridge", "start", g.stream.ID().String(), word(g.host))
	if err != nil {
		return nil, err
	}
	if said.state != bridge.Ready {
		return nil, errors.Join(&startError{c.Peer(), said.words, said.fix}, carrier.Close())
	}
	g.at = job.Agent{Token: g.stream.ID().String(), Program: said.program, Boot: said.boot}
	if g.agents.Started != nil {
		g.agents.Started(g.host, g.at)
	}
	return carrier, nil
}

// startError is a host whose bridge says that it cannot start an agent.
type startError struct {
	Peer
	words, fix string // of the bridge
}

// Error says why.
func (e *startError) Error() string {
	return fmt.Sprintf("%s: the agent cannot be started: %s", e.Peer, e.words)
}

// Hint says what to do next.
func (e *startError) Hint() string {
	if e.fix == "" {
		return fmt.Sprintf("look at %s, then run again; see: %s true", e.Name, e.command())
	}
	return "on " + e.Name + ": " + e.fix
}

// install runs a bridge by this very program, which is put on the host first where
// it is missing.
func (g *agent) install(ctx context.Context, c *Client, args ...string) (*carrier, answer, error) {
	session, _, note, err := installAndRun(ctx, c, g.agents.Program, args...)
	if err != nil {
		return nil, answer{}, err
	}
	if note != "" {
		g.note(note)
	}
	return g.answer(ctx, c, session)
}

// word is a host's name as an argument: what is not plain is left out, since it
// only tells people who look at ps whose agent that is.
func word(host string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, host)
	if plain == "" || plain[0] == '-' {
		return "host"
	}
	return plain
}
