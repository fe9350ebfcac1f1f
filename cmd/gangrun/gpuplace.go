package main

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

// gpuPlacer finds GPUs for a gang, waits for them where others have them, and
// holds them.
type gpuPlacer struct {
	run      string
	command  string
	hosts    []job.Host // with Devices; Busy only where no lease tells of it
	pretend  bool       // they are pretended: each has leases of its own
	want     topology.Want
	guessed  bool // nobody has said how many GPUs a rank needs
	patience job.Patience
	limit    time.Duration // how long the GPUs are needed at most; 0 is not known
	not      job.Excluded
	emit     func(job.Event)
	// turn returns a place on a host whose leases are those of space.
	turn func(host, space string) gpuTurn
	// again looks at the hosts anew, for what others than gangrun use; nil where
	// nothing can have changed.
	again func() []job.Host
}

// gpuTurn is a place among those that wait for GPUs of a host.
type gpuTurn interface {
	lease.Member[gpuGrant]
	Close() error
}

// gpuGrant is a lease of GPUs of one host.
type gpuGrant interface {
	lease.Grant
	Done() <-chan struct{} // closed when it is lost or released
	Err() error            // why it was lost
}

// agentTurn is a place that a host's agent has.
type agentTurn struct{ *launcher.Turn }

// Try implements lease.Member.
func (t agentTurn) Try(ctx context.Context, r lease.Request) (gpuGrant, *lease.Waiting, error) {
	grant, waiting, err := t.Turn.Try(ctx, r)
	if grant == nil {
		return nil, waiting, err
	}
	return grant, waiting, err
}

// lookAgain is how often a gang that waits looks for what others use.
const lookAgain = 5 * time.Second

// place waits for a place and holds it. The Lease is lost with any of its GPUs.
func (p *gpuPlacer) place(ctx context.Context) (supervisor.Lease, error) {
	w := p.newWait()
	defer w.close()
	held, err := lease.Acquire(ctx, w.members, w.plan)
	if err != nil {
		return supervisor.Lease{}, p.refusal(err)
	}
	if p.pretend { // this machine has neither the CPUs nor the NICs
		for i := range w.choice.Placement.Ranks {
			w.choice.Placement.Ranks[i].CPUs = ""
		}
		for i := range w.choice.Placement.Hosts {
			w.choice.Placement.Hosts[i].NICs = nil
		}
	}
	held = slices.DeleteFunc(held, func(h gpuGrant) bool { return h == nil })
	watch, release := watchGrants(held)
	return supervisor.Lease{
		Placement:   w.choice.Placement,
		Explanation: job.Explanation{Why: append(slices.Clone(w.choice.Why), fmt.Sprintf("level %s: %s", w.choice.Level, strings.Join(w.choice.Words(), "; ")))},
		Held:        watch,
		Release:     release,
	}, nil
}

// watchGrants returns a context that ends when one of some leases is lost, and what
// gives them back.
func watchGrants(held []gpuGrant) (watch context.Context, release func()) {
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

// never says why the gang would not fit even if nobody used a GPU, nil where it
// would.
func (p *gpuPlacer) never() error {
	if _, err := topology.PlaceGPUs(p.want, job.Inventory{Hosts: p.hosts}, p.not); err != nil && !ever(err) {
		return p.refusal(err)
	}
	return nil
}

// refusal is an error of place as a supervisor understands it.
func (p *gpuPlacer) refusal(err error) error {
	var none *topology.NoPlacement
	if !errors.As(err, &none) {
		return err
	}
	hint := none.Hint
	if p.guessed {
		hint += "; ranks that need no GPU, or share those that they see, are started with --gpus-per-rank 0"
	}
	return supervisor.NoPlacement{Text: none.Text, Hint: hint, Never: !none.Ever && !none.Unfit}
}
