package agents

import (
	"context"
	"sync"
	"time"
)

// Options are the settings of a Pool.
type Options struct {
	Dialer Dialer
	// Tmpdir returns the value of TMPDIR on a simulated host. If Tmpdir is nil or returns "", the host keeps
	// the TMPDIR of this machine.
	Tmpdir func(host string) string
	// Env has variables that agents on other machines get in addition to their own environment.
	Env []string
	// HostTimeout is how long a host may be silent before it counts as lost.
	HostTimeout time.Duration
	// OrphanGrace is how long an agent lives without contact with its controller.
	OrphanGrace time.Duration
	// Hurry is closed when the user is in a hurry. From then on, the launcher does not wait for silent agents.
	Hurry <-chan struct{}
}

// Pool has the agents of a run, one for each host.
type Pool struct {
	opts Options

	mu      sync.Mutex
	agents  map[string]*Agent
	dialing map[string]chan struct{} // per host; closed when the start of the agent has succeeded or failed
	retired map[string]*Agent        // agents to end before another agent is started on their hosts
	spent   map[*Agent]bool          // retired agents whose part of an adopted gang has ended
}

// New returns a pool without agents.
func New(opts Options) *Pool {
	return &Pool{opts: opts, agents: map[string]*Agent{}, dialing: map[string]chan struct{}{}, retired: map[string]*Agent{}, spent: map[*Agent]bool{}}
}

// Get returns the agent of a host. If the host has no agent, or if gangrun has given up its agent, Get starts
// an agent. Meanwhile, other callers that want the agent of this host wait.
func (p *Pool) Get(ctx context.Context, host string) (*Agent, error) {
	for {
		p.mu.Lock()
		a, busy := p.agents[host], p.dialing[host]
		if a == nil && busy == nil {
			p.dialing[host] = make(chan struct{})
		}
		p.mu.Unlock()
		switch {
		case a != nil && !a.Link.Held && a.EndedWhilePaused(p.opts.OrphanGrace) != nil:
			p.Retire(host)
			continue
		case a != nil:
			return a, nil
		case busy == nil:
			return p.start(ctx, host)
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Current returns the agent of a host, or nil if there is none at present.
func (p *Pool) Current(host string) *Agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agents[host]
}

// start starts the agent of a host. Its caller, Get, has made p.dialing[host].
func (p *Pool) start(ctx context.Context, host string) (*Agent, error) {
	err := p.endRetired(ctx, host)
	var a *Agent
	if err == nil {
		a, err = connect(ctx, p.opts, host)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.dialing[host])
	delete(p.dialing, host)
	if err != nil {
		return nil, &StartError{Host: host, Err: err}
	}
	p.agents[host] = a
	return a, nil
}

// Drop ends an agent that no longer answers, so that the next attempt starts another one. It
// returns an error if ranks of the agent may still run, or if ctx has ended.
func (p *Pool) Drop(ctx context.Context, a *Agent) error {
	p.mu.Lock()
	if p.agents[a.Host] == a {
		delete(p.agents, a.Host)
	}
	p.mu.Unlock()
	return a.leave(ctx, p.leaveLimit(), p.opts.Hurry)
}

// EndLimit is how long gangrun waits for the end of an agent. It is longer than the time for which an agent
// waits for processes that do not end after SIGKILL, because an agent on another machine may first have to
// notice that its controller is gone.
const EndLimit = 15 * time.Second

// leaveLimit limits the wait for an agent that gangrun has given up. The agent may have been in contact again in the
// meantime, and may still have its whole orphan grace.
func (p *Pool) leaveLimit() time.Duration { return 3*EndLimit + 2*p.opts.OrphanGrace }

// Retire retires the agents of hosts: the Pool ends such an agent before it starts another one
// on the same host.
func (p *Pool) Retire(hosts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, host := range hosts {
		if a := p.agents[host]; a != nil {
			delete(p.agents, host)
			p.retired[host] = a
		}
	}
}

// RetireHeld retires the agents that an earlier controller has started.
func (p *Pool) RetireHeld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for host, a := range p.agents {
		if a.Link.Held {
			delete(p.agents, host)
			p.retired[host] = a
		}
	}
}

// RetireSpent retires an agent whose part of an adopted gang has ended. It does nothing if the
// Pool no longer has the agent.
func (p *Pool) RetireSpent(a *Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agents[a.Host] == a {
		delete(p.agents, a.Host)
		p.retired[a.Host] = a
		p.spent[a] = true
	}
}

// endRetired ends the retired agent of a host, if there is one. If ctx ends before the agent does, the agent stays
// retired.
func (p *Pool) endRetired(ctx context.Context, host string) error {
	p.mu.Lock()
	a := p.retired[host]
	delete(p.retired, host)
	p.mu.Unlock()
	if a == nil {
		return nil
	}
	err := p.Drop(ctx, a)
	if ctx.Err() != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retired[host] = a
		return context.Cause(ctx)
	}
	if err != nil && !a.Link.Local {
		err = &UnreachableError{Host: host, Err: err}
	}
	return err
}

// Close ends all agents. It does not wait for silent agents that have no gang, because these end by themselves
// when they have no controller.
func (p *Pool) Close() error {
	p.mu.Lock()
	var agents []*Agent
	var idle []bool
	for _, of := range []map[string]*Agent{p.agents, p.retired} {
		for _, a := range of {
			agents = append(agents, a)
			idle = append(idle, !a.Link.Held || p.spent[a])
		}
	}
	clear(p.agents)
	clear(p.retired)
	p.mu.Unlock()
	hurry := make(chan struct{})
	close(hurry)
	limit := p.leaveLimit()
	return Each(len(agents), func(i int) error {
		a := agents[i]
		if !idle[i] {
			return a.leave(context.Background(), limit, p.opts.Hurry)
		}
		if err := a.leave(context.Background(), limit, hurry); err != nil && a.Silence() < AbandonAfter {
			return err
		}
		return nil
	})
}
