// Package gpuqueue waits for GPUs and leases them for a gang. The gang claims GPUs in every place
// in which it would fit, and gets the GPUs of the first place that has enough free GPUs.
package gpuqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/lease"
)

// Gang is a gang that needs GPUs, and the hosts on which it could run.
type Gang struct {
	Run       string
	Command   string
	Hosts     []job.Host // with Devices; Busy is set only if programs other than gangrun use a GPU
	Simulated bool       // the hosts are simulated; each has its own leases
	Want      topology.Want
	Guessed   bool // the user has not said how many GPUs a rank needs
	Patience  job.Patience
	Limit     time.Duration // how long the gang holds its GPUs at most; 0 if that is not known
	Excluded  job.Excluded
	Emit      func(job.Event)
	// NewTurn returns a Turn on a host. space is the host's name in the directory of
	// leases.
	NewTurn func(host, space string) Turn
	// Look returns the hosts with the current use of their GPUs by other programs. It is
	// nil if that use cannot have changed.
	Look func() []job.Host
}

// Turn is a gang's place in the queue for the GPUs of one host.
type Turn interface {
	lease.Member[Grant]
	Close() error
}

// Grant is a lease on GPUs of one host.
type Grant interface {
	lease.Grant
	Done() <-chan struct{} // closed when the lease is lost or released
	Err() error            // why it was lost
}

// AgentTurn is a Turn on a host with an agent. The agent, not this process, is in the host's queue
// for GPUs.
type AgentTurn struct{ *launcher.Turn }

// Try implements lease.Member.
func (t AgentTurn) Try(ctx context.Context, r lease.Request) (Grant, *lease.Waiting, error) {
	grant, waiting, err := t.Turn.Try(ctx, r)
	if grant == nil {
		return nil, waiting, err
	}
	return grant, waiting, err
}

// LookEvery is how often a waiting gang checks which GPUs other programs use.
const LookEvery = 5 * time.Second

// Place waits for GPUs, leases them, and returns the placement with the leases. The Lease that it returns is lost as
// soon as one of these leases is lost.
func (g *Gang) Place(ctx context.Context) (supervisor.Lease, error) {
	w := newWait(g)
	defer w.close()
	held, err := lease.Acquire(ctx, w.members, w.plan)
	if err != nil {
		return supervisor.Lease{}, g.refusal(err)
	}
	if g.Simulated { // this machine does not have the CPUs and NICs of the hosts
		for i := range w.choice.Placement.Ranks {
			w.choice.Placement.Ranks[i].CPUs = ""
		}
		for i := range w.choice.Placement.Hosts {
			w.choice.Placement.Hosts[i].NICs = nil
		}
	}
	held = slices.DeleteFunc(held, func(h Grant) bool { return h == nil })
	watch, release := Watch(held)
	return supervisor.Lease{
		Placement:   w.choice.Placement,
		Explanation: job.Explanation{Why: append(slices.Clone(w.choice.Why), fmt.Sprintf("level %s: %s", w.choice.Level, strings.Join(w.choice.Words(), "; ")))},
		Held:        watch,
		Release:     release,
	}, nil
}

// Watch returns a context and a function that releases the leases. The context ends when one of the leases is lost. Its
// cause is the reason.
func Watch(held []Grant) (watch context.Context, release func()) {
	watch, lost := context.WithCancelCause(context.Background())
	var waiting sync.WaitGroup
	for _, h := range held {
		waiting.Go(func() { // the goroutine ends when release releases the lease
			<-h.Done()
			lost(h.Err())
		})
	}
	return watch, func() {
		for _, h := range held {
			_ = h.Release() // if that fails, the end of the agents releases them
		}
		waiting.Wait()
		lost(nil)
	}
}

// Check returns an error if the gang would not fit even if no GPU were in use.
func (g *Gang) Check() error {
	if _, err := topology.PlaceGPUs(g.Want, job.Inventory{Hosts: g.Hosts}, g.Excluded); err != nil && !fitsIdle(err) {
		return g.refusal(err)
	}
	return nil
}

// refusal turns an error from a placement into a supervisor.NoPlacement.
func (g *Gang) refusal(err error) error {
	var none *topology.NoPlacement
	if !errors.As(err, &none) {
		return err
	}
	hint := none.Hint
	if g.Guessed {
		hint += "; ranks that need no GPU, or share those that they see, are started with --gpus-per-rank 0"
	}
	return supervisor.NoPlacement{Text: none.Text, Hint: hint, Never: !none.Ever && !none.Unfit}
}
