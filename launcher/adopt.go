package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/rankenv"
)

// Why an agent is not there that had a share of a gang.
var (
	errEndedHere  = errors.New("it ran on the controller's own machine, and ended with the controller")
	errAgentEnded = errors.New("it has ended: it was killed, or heard nothing for too long once its controller had died")
)

// Why an agent is gone, by its host's own word.
var (
	ErrGone = errors.New("the agent was killed or has ended")
	// ErrAnew: with what its host had in memory.
	ErrAnew = errors.New("the host was started anew")
)

// endedWithoutController reports whether an agent may have ended with its controller.
func endedWithoutController(err error) bool {
	return errors.Is(err, errEndedHere) || errors.Is(err, errAgentEnded)
}

// adopt is Run for a gang that an earlier controller has started: agents that hold
// it tell everything anew, and ranks whose agents are gone are lost. Those agents
// serve no other attempt.
func (l *Launcher) adopt(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if len(a.Placement.Hosts) == 0 {
		return job.Outcome{}, fmt.Errorf("attempt %d has no hosts", a.Number)
	}
	asked := a.MPI != job.MPIAuto && a.MPI != job.MPINone && a.MPI != ""
	nodes := make([]*node, len(a.Placement.Hosts))
	// An end of ctx is an order to stop the gang, which has to be found for that.
	finding, found := l.unhurried(context.WithoutCancel(ctx))
	defer found()
	_ = each(len(nodes), func(i int) error {
		nodes[i] = l.find(finding, a.Placement, i)
		return nil
	})
	var left []string
	mpi := job.MPI("")
	for _, n := range nodes {
		if endedWithoutController(n.lost) {
			left = append(left, n.agent.host)
		}
		if n.lost == nil && mpi == "" {
			limited, cancel := context.WithTimeout(finding, helloLimit)
			if found, err := l.resolve(limited, a, n.agent); err == nil {
				mpi = found.mpi
			}
			cancel()
		}
	}
	a.MPI = cmp.Or(mpi, job.MPIMPICH) // where none is left, there is nothing to pass on
	outcome, err := l.stay(ctx, a, asked, nodes, rankenv.Rendezvous{}, emit)
	outcome.AgentsEnded = left
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range nodes {
		if l.agents[n.agent.host] == n.agent {
			delete(l.agents, n.agent.host)
			l.retired[n.agent.host] = n.agent
			n.agent.spent = true // or it would have been dropped
		}
	}
	return outcome, err
}

// errHurried is why nobody waits any more.
var errHurried = errors.New("told to end at once")

// unhurried returns a context that ends with Hurry, or when stop is called.
func (l *Launcher) unhurried(ctx context.Context) (hurried context.Context, stop func()) {
	hurried, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-l.hurry:
			cancel(errHurried)
		case <-hurried.Done():
		}
	})
	return hurried, func() { cancel(nil); waiting.Wait() }
}

// find returns the host's share of a gang that is to be adopted.
func (l *Launcher) find(ctx context.Context, p job.Placement, i int) *node {
	host := p.Hosts[i].Name
	n := &node{number: i, ranks: p.On(host)}
	agent, err := l.agent(ctx, host)
	switch {
	case err != nil:
		n.lost = fmt.Errorf("%s was not reached when the run was taken over: %w", host, err)
	case agent.link.Held:
		n.agent = agent
	case agent.link.Local:
		n.lost = errEndedHere
	case agent.link.Anew:
		n.lost = ErrAnew
	default:
		n.lost = errAgentEnded
	}
	if n.lost != nil {
		n.agent = &remote{host: host}
	}
	if n.lost != nil && err == nil {
		n.agent.link.Rest = agent.link.Before
	}
	return n
}

// dropAdopted returns what ends the agent of a lost share of an adopted gang. One
// that could not be found has ended as soon as it must have, for want of a
// controller.
func (l *Launcher) dropAdopted(nodes []*node) func(*remote) error {
	return func(a *remote) error {
		for _, n := range nodes {
			if n.agent != a || n.lost == nil {
				continue
			}
			if !endedWithoutController(n.lost) && !errors.Is(n.lost, ErrAnew) {
				by := l.begun.Add(l.opts.OrphanGrace + endLimit)
				select {
				case <-time.After(time.Until(by)):
				case <-l.hurry:
					return fmt.Errorf("%s may still have ranks until %s: %w", a.host, by.Format(time.TimeOnly), errNotAwaited)
				}
			}
			return nil
		}
		return l.drop(context.Background(), a)
	}
}

// Renew has the agents that an earlier controller has started ended before their
// hosts are used.
func (l *Launcher) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for host, a := range l.agents {
		if a.link.Held {
			delete(l.agents, host)
			l.retired[host] = a
		}
	}
}

// retire has the agents of hosts ended before the hosts are used again.
func (l *Launcher) retire(hosts map[string]error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for host := range hosts {
		if a := l.agents[host]; a != nil {
			delete(l.agents, host)
			l.retired[host] = a
		}
	}
}

// endRetired ends the agent of a host that serves no more. One that has not ended
// when ctx does is still to be ended.
func (l *Launcher) endRetired(ctx context.Context, host string) error {
	l.mu.Lock()
	a := l.retired[host]
	delete(l.retired, host)
	l.mu.Unlock()
	if a == nil {
		return nil
	}
	err := l.drop(ctx, a)
	if ctx.Err() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.retired[host] = a
		return context.Cause(ctx)
	}
	if err != nil && !a.link.Local {
		err = &UnreachableError{Host: host, Err: err}
	}
	return err
}
