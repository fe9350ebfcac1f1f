package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/remote/resumable"
)

// agent is the agent of one host, as this side sees it.
type agent struct {
	agents *Agents
	host   string
	at     job.Agent
	stream *resumable.Conn
	begun  time.Time // when maintain began

	life   context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when maintain has returned

	mu    sync.Mutex
	gone  bool  // the agent and its processes are known to be gone
	wrong error // why the agent cannot be reached, if that is known

	rebooted bool // the host was booted after an earlier controller had started its agent
	// left is the time when the last connection was closed. The agent has received nothing since then, unless relayed
	// is true. In that case, a jump host or a program may have passed on data later. Until maintain has returned, only
	// maintain uses left and relayed.
	left    time.Time
	relayed bool
}

func (g *agent) note(text string) {
	if g.agents.Note != nil {
		g.agents.Note(g.host, text)
	}
}

// lastContact returns when the agent last sent something.
func (g *agent) lastContact() time.Time {
	if t := g.stream.Heard(); !t.IsZero() {
		return t
	}
	return g.begun
}

// isGone reports whether the agent is known to be gone.
func (g *agent) isGone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone
}

// setGone records that the agent is gone.
func (g *agent) setGone() {
	g.mu.Lock()
	g.gone, g.wrong = true, cmp.Or(g.wrong, agents.ErrGone)
	g.mu.Unlock()
}

// setTrouble records why the agent cannot be reached. why is nil if the agent can be reached.
func (g *agent) setTrouble(why error) {
	g.mu.Lock()
	g.wrong = why
	g.mu.Unlock()
}

// trouble returns why the agent cannot be reached. It returns nil if the agent can be reached, or if the reason is not
// known.
func (g *agent) trouble() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}

// adopt connects to the agent that an earlier controller has started. It returns nil if there is no such agent any
// more. If the agent is ending, adopt waits for its end.
func (g *agent) adopt(ctx context.Context, c *Conn) (*bridgeProcess, error) {
	at, ok := g.agents.Held[g.host]
	if !ok {
		return nil, nil
	}
	g.at = at
	for {
		b, said, err := g.ask(ctx, c, "join")
		switch {
		case err != nil:
			return nil, err
		case said.state == bridge.Ready:
			g.at.Program = said.program // the program may have been installed again at another path
			return b, nil
		case said.state != bridge.Ending || said.boot != at.Boot:
			g.rebooted = said.boot != at.Boot
			return nil, nil
		}
		_ = b.process.Close() // this closes only the process; the connection stays open
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: the agent of the earlier controller is ending: %s", c.Host, said.words)
		}
	}
}

// ask runs a bridge with the command what, which is about the agent. It runs the bridge by the program that started the
// agent. If the host has lost that program, for instance because its /tmp was emptied at a boot, ask uses the program
// of this process.
func (g *agent) ask(ctx context.Context, c *Conn, what string, more ...string) (*bridgeProcess, answer, error) {
	args := append([]string{"bridge", what, g.at.Token}, more...)
	b, said, err := runBridge(ctx, c, runLine(g.at.Program, args...))
	if errors.As(err, new(*noAnswerError)) {
		return g.install(ctx, c, args...)
	}
	return b, said, err
}

// start starts the agent.
func (g *agent) start(ctx context.Context, c *Conn) (*bridgeProcess, error) {
	b, said, err := g.install(ctx, c, "bridge", "start", g.stream.ID().String(), plainWord(g.host))
	if err != nil {
		return nil, err
	}
	if said.state != bridge.Ready {
		return nil, errors.Join(&startError{c.Host, said.words, said.fix}, b.Close())
	}
	g.at = job.Agent{Token: g.stream.ID().String(), Program: said.program, Boot: said.boot}
	if g.agents.Started != nil {
		g.agents.Started(g.host, g.at)
	}
	return b, nil
}

// startError is the error if a bridge cannot start an agent on a host.
type startError struct {
	host       Host
	words, fix string // what the bridge has printed
}

// Error returns the reason that the bridge gives.
func (e *startError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.host, agents.ErrCannotStart, e.words)
}

// Unwrap returns agents.ErrCannotStart.
func (e *startError) Unwrap() error { return agents.ErrCannotStart }

// Hint says what to do next.
func (e *startError) Hint() string {
	if e.fix == "" {
		return fmt.Sprintf("look at %s, then run again; to test the connection: %s true", e.host.Name, e.host.Login)
	}
	return "on " + e.host.Name + ": " + e.fix
}

// install runs a bridge by the program of this process. If the host lacks the program, install first installs it there.
func (g *agent) install(ctx context.Context, c *Conn, args ...string) (*bridgeProcess, answer, error) {
	if c.Self != nil {
		return runBridge(ctx, c, c.Self(args...))
	}
	p, _, note, err := installAndRun(ctx, c, g.agents.Program, args...)
	if err != nil {
		return nil, answer{}, err
	}
	if note != "" {
		g.note(note)
	}
	return readAnswer(ctx, c, p)
}

// plainWord returns the name of a host as an argument, without special characters. The argument only shows users of ps
// which host an agent belongs to.
func plainWord(host string) string {
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
