// Package gpuqueue gets GPUs for a gang: it claims them on every place that could take the
// gang, waits while others hold them, and leases those of the first place that has room.
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

// Gang is a gang that is to get GPUs, and what there is to place it on.
type Gang struct {
	Run       string
	Command   string
	Hosts     []job.Host // with Devices; Busy only where no lease says who uses the GPU
	Simulated bool       // the hosts are simulated on this machine: each has leases of its own
	Want      topology.Want
	Guessed   bool // the user has not said how many GPUs a rank needs
	Patience  job.Patience
	Limit     time.Duration // how long the gang holds its GPUs at most; 0 if that is not known
	Excluded  job.Excluded
	Emit      func(job.Event)
	// NewTurn returns a turn on a host whose leases are in the given space.
	NewTurn func(host, space string) Turn
	// Look looks at the hosts again for what programs other than gangrun use. It is nil
	// where that cannot have changed.
	Look func() []job.Host
}

// Turn is a gang's turn among those that wait for GPUs of a host.
type Turn interface {
	lease.Member[Grant]
	Close() error
}

// Grant is a lease of GPUs of one host.
type Grant interface {
	lease.Grant
	Done() <-chan struct{} // closed when the lease is lost or released
	Err() error            // why it was lost
}

// AgentTurn is a Turn that a host's agent holds.
type AgentTurn struct{ *launcher.Turn }

// Try implements lease.Member.
func (t AgentTurn) Try(ctx context.Context, r lease.Request) (Grant, *lease.Waiting, error) {
	grant, waiting, err := t.Turn.Try(ctx, r)
	if grant == nil {
		return nil, waiting, err
	}
	return grant, waiting, err
}

// LookEvery is how often a gang that waits looks for what others use.
const LookEvery = 5 * time.Second

// Place waits until the gang can have GPUs and leases them. It is lost as soon as the lease of one of its GPUs is lost.
func (g *Gang) Place(ctx context.Context) (supervisor.Lease, error) {
	w := newWait(g)
	defer w.close()
	held, err := lease.Acquire(ctx, w.members, w.plan)
	if err != nil {
		return supervisor.Lease{}, g.refusal(err)
	}
	if g.Simulated { // this machine has neither the CPUs nor the NICs of the hosts
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

// Watch returns a context that ends when one of the leases is lost, with the reason as
// its cause, and a function that gives the leases back.
func Watch(held []Grant) (watch context.Context, release func()) {
	watch, lost := context.WithCancelCause(context.Background())
	var waiting sync.WaitGroup
	for _, h := range held {
		waiting.Go(func() { // ends with the lease, which release ends
			<-h.Done()
			lost(h.Err())
		})
	}
	return watch, func() {
		for _, h := range held {
			_ = h.Release() // its end frees them at the latest
		}
		waiting.Wait()
		lost(nil)
	}
}

// Check returns an error if the gang would not fit even if nobody used a GPU.
func (g *Gang) Check() error {
	if _, err := topology.PlaceGPUs(g.Want, job.Inventory{Hosts: g.Hosts}, g.Excluded); err != nil && !fitsIdle(err) {
		return g.refusal(err)
	}
	return nil
}

// refusal turns an error of a placement into a supervisor.NoPlacement.
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
