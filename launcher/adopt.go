package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/rankenv"
)

// endedWithoutController reports whether an agent may have ended because it had no controller.
func endedWithoutController(err error) bool {
	return errors.Is(err, agents.ErrEndedWithController) || errors.Is(err, agents.ErrEnded)
}

// adopt is Run for a gang that an earlier controller has started. The agents of the gang report everything again. If an
// agent is gone, its ranks are lost. The agents serve no other attempt.
func (l *Launcher) adopt(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	if len(a.Placement.Hosts) == 0 {
		return job.Outcome{}, fmt.Errorf("attempt %d has no hosts", a.Number)
	}
	mpiNamed := a.MPI != job.MPIAuto && a.MPI != job.MPINone && a.MPI != ""
	nodes := make([]*node, len(a.Placement.Hosts))
	// The end of ctx is an order to end the gang. But gangrun must find the gang before it can end the gang.
	finding, found := agents.Unhurried(context.WithoutCancel(ctx), l.hurry)
	defer found()
	_ = agents.Each(len(nodes), func(i int) error {
		nodes[i] = l.find(finding, a.Placement, i)
		return nil
	})
	var left []string
	mpi := job.MPI("")
	for _, n := range nodes {
		if endedWithoutController(n.lost) {
			left = append(left, n.agent.Host)
		}
		if n.lost == nil && mpi == "" {
			limited, cancel := context.WithTimeout(finding, agents.HelloLimit)
			if found, err := l.resolve(limited, a, n.agent); err == nil {
				mpi = found.mpi
			}
			cancel()
		}
	}
	a.MPI = cmp.Or(mpi, job.MPIMPICH) // without agents, the value has no effect
	outcome, err := l.stay(ctx, a, mpiNamed, nodes, rankenv.Rendezvous{}, emit)
	outcome.AgentsEnded = left
	for _, n := range nodes {
		l.pool.RetireSpent(n.agent)
	}
	return outcome, err
}

// find returns the part of an adopted gang that is on host i of p.
func (l *Launcher) find(ctx context.Context, p job.Placement, i int) *node {
	host := p.Hosts[i].Name
	n := &node{number: i, ranks: p.On(host)}
	agent, err := l.pool.Get(ctx, host)
	switch {
	case err != nil:
		n.lost = &agents.StartError{Host: host, Err: fmt.Errorf("%w, when the run was taken over", agents.Why(err))}
	case agent.Link.Held:
		n.agent = agent
	case agent.Link.Local:
		n.lost = agents.ErrEndedWithController
	case agent.Link.Restarted:
		n.lost = agents.ErrRestarted
	default:
		n.lost = agents.ErrEnded
	}
	if n.lost != nil {
		n.agent = &agents.Agent{Host: host}
	}
	if n.lost != nil && err == nil {
		n.agent.Link.Rest = agent.Link.Before
	}
	return n
}

// dropAdopted returns a function that ends the agent of a lost part of an adopted gang. If gangrun could not reach an
// agent, the function waits until the orphan grace is over, because the agent has ended by then.
func (l *Launcher) dropAdopted(nodes []*node) func(*agents.Agent) error {
	return func(a *agents.Agent) error {
		for _, n := range nodes {
			if n.agent != a || n.lost == nil {
				continue
			}
			if !endedWithoutController(n.lost) && !errors.Is(n.lost, agents.ErrRestarted) {
				by := l.begun.Add(l.opts.OrphanGrace + agents.EndLimit)
				select {
				case <-time.After(time.Until(by)):
				case <-l.hurry:
					return fmt.Errorf("%s may still have ranks until %s: %w", a.Host, by.Format(time.TimeOnly), agents.ErrNotAwaited)
				}
			}
			return nil
		}
		return l.pool.Drop(context.Background(), a)
	}
}

// Renew gives up the agents that an earlier controller has started. Before a later call of Run uses the host of
// such an agent, it ends that agent.
func (l *Launcher) Renew() { l.pool.RetireHeld() }
