package ssh

import (
	"context"
	"errors"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/resumable"
	"github.com/gangrun/gangrun/launcher"
)

// Agents starts agents on other hosts, each with a connection that outlives what
// carries it.
type Agents struct {
	Dialer *Dialer
	// Program is what is put on a host that has it not.
	Program Program
	// Target is what a host is dialled as, [USER@]HOST[:PORT] or a name of
	// ssh_config.
	Target func(host string) string
	// OrphanGrace is how long an agent lives that hears nothing.
	OrphanGrace time.Duration
	// HostTimeout is after how much silence a host counts as lost; 0 is never.
	HostTimeout time.Duration
	// Note is told what a user should know; nil where nobody asks.
	Note func(host, text string)
	// Started is told of each agent that has been started, before Dial returns, so
	// that a later controller finds it again; nil where nobody asks.
	Started func(host string, at job.Agent)
	// Held are the agents that an earlier controller has started; Dial takes over
	// those that still live.
	Held map[string]job.Agent
}

// startLimit bounds the start of an agent, the arrival of the program included.
const startLimit = 2 * time.Minute

// Dial implements launcher.Dialer.
func (a *Agents) Dial(ctx context.Context, host string) (launcher.Link, error) {
	link, err := a.dial(ctx, host)
	if err != nil {
		err = &launcher.UnreachableError{Host: host, Err: err}
	}
	return link, err
}

func (a *Agents) dial(ctx context.Context, host string) (launcher.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, a.Target(host))
	if err != nil {
		return launcher.Link{}, err
	}
	g := &agent{agents: a, host: host, stream: resumable.New(resumable.Options{ID: resumable.NewID()}), ended: make(chan struct{})}
	carrier, err := g.adopt(ctx, c)
	held := carrier != nil
	if carrier == nil && err == nil {
		carrier, err = g.start(ctx, c)
	}
	if err != nil {
		return launcher.Link{}, errors.Join(err, c.Close())
	}
	for _, note := range c.Notes() {
		g.note(note)
	}
	g.begun = time.Now() // its bridge has just been heard
	g.life, g.cancel = context.WithCancel(context.Background())
	go func() { // ends with the stream, or by end
		defer close(g.ended)
		g.keep(carrier)
	}()
	link := launcher.Link{Conn: g.stream, Heard: g.heard, Trouble: g.trouble, Address: c.address().Addr(), Held: held, Anew: g.anew, End: g.end, Rest: g.rest}
	if before, ok := a.Held[host]; ok && !held {
		link.Before = (&agent{agents: a, host: host, at: before}).rest
	}
	return link, nil
}

// Bring puts another program on a host and returns its path there.
func (a *Agents) Bring(ctx context.Context, host string, p Program) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c, err := a.Dialer.Dial(ctx, a.Target(host))
	if err != nil {
		return "", err
	}
	path, _, err = installProgram(ctx, c, p)
	return path, errors.Join(err, c.Close())
}
