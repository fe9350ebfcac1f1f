package ssh

import (
	"context"
	"errors"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/resumable"
)

// Agents starts agents on other hosts. If the connection to an agent breaks, the stream to the agent continues
// over a new connection.
type Agents struct {
	Dialer  Dialer
	Program Program // the program of the agents, which Agents installs on hosts that lack it
	// OrphanGrace is how long an agent lets its ranks run while it receives nothing from this
	// process.
	OrphanGrace time.Duration
	// HostTimeout is the time since the last contact after which a host counts as lost; 0 means never.
	HostTimeout time.Duration
	// Note is called with notes for the user. It may be nil.
	Note func(host, text string)
	// Started is called with each agent that Dial has started, before Dial returns. Started should store the
	// job.Agent, because a later controller finds the agent by it. Started may be nil.
	Started func(host string, at job.Agent)
	// Held are the agents that an earlier controller has started. Dial adopts those that still
	// run.
	Held map[string]job.Agent
}

// startLimit limits the time for starting an agent, which includes the installation of the program.
const startLimit = 2 * time.Minute

// Dial implements agents.Dialer.
func (a *Agents) Dial(ctx context.Context, host string) (agents.Link, error) {
	link, err := a.dial(ctx, host)
	if err != nil {
		err = &agents.UnreachableError{Host: host, Err: err}
	}
	return link, err
}

func (a *Agents) dial(ctx context.Context, host string) (agents.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, host)
	if err != nil {
		return agents.Link{}, err
	}
	g := &agent{agents: a, host: host, stream: resumable.New(resumable.Options{ID: resumable.NewID()}), ended: make(chan struct{})}
	first, err := g.adopt(ctx, c)
	held := first != nil
	if first == nil && err == nil {
		first, err = g.start(ctx, c)
	}
	if err != nil {
		return agents.Link{}, errors.Join(err, c.Close())
	}
	for _, note := range c.Notes {
		g.note(note)
	}
	g.begun = time.Now() // the bridge of the agent has just answered
	g.life, g.cancel = context.WithCancel(context.Background())
	go func() { // the goroutine ends with the stream, or when end cancels it
		defer close(g.ended)
		g.maintain(first)
	}()
	link := agents.Link{
		Conn: g.stream, Heard: g.lastContact, Trouble: g.trouble, Address: c.Address.Addr(),
		Held: held, Restarted: g.rebooted, End: g.end, Rest: g.fetch,
	}
	if before, ok := a.Held[host]; ok && !held {
		link.Before = (&agent{agents: a, host: host, at: before}).fetch
	}
	return link, nil
}

// Bring installs a program on a host and returns its path there.
func (a *Agents) Bring(ctx context.Context, host string, p Program) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, host)
	if err != nil {
		return "", err
	}
	path, _, err = install(ctx, c, p)
	return path, errors.Join(err, c.Close())
}
