package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/controller/gpuqueue"
	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
)

// placer finds places for gangs on the hosts of a run.
type placer struct {
	run       string // its ID
	simulated bool   // the hosts are simulated on this machine
	launcher  *launcher.Launcher
	probed    *hosts.Found
	turns     atomic.Int64 // number of places in queues for GPUs that were taken so far
	batch     allocation
	mounts    mountNote
}

// Place implements supervisor.Placer. The lease of ranks without GPUs cannot be lost.
func (p *placer) Place(ctx context.Context, spec job.Spec, excluded job.Excluded, emit func(job.Event)) (supervisor.Lease, error) {
	lease, err := p.place(ctx, spec, excluded, 0, emit)
	var none supervisor.NoPlacement
	for smaller := spec; errors.As(err, &none) && spec.MinRanks > 0 && smaller.Ranks > spec.MinRanks; {
		smaller.Ranks--
		var other error
		if lease, other = p.place(ctx, smaller, excluded, 0, emit); other == nil {
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("a gang of %s, since there is no room for more: %s", text.Count(smaller.Ranks, "rank"), none.Text)})
			err = nil
			break
		}
		if !errors.As(other, new(supervisor.NoPlacement)) {
			return lease, other
		}
	}
	if err == nil {
		p.mounts.note(spec, emit)
		if inventory, unknown := p.probed.Inventory(ctx); unknown == nil {
			p.batch.note(lease.Placement, inventory.Hosts, emit)
		}
	}
	return lease, err
}

// place is Place for a gang that needs its place for at most limit. A limit of 0 means that this time is not known.
func (p *placer) place(ctx context.Context, spec job.Spec, not job.Excluded, limit time.Duration, emit func(job.Event)) (supervisor.Lease, error) {
	for away := []string(nil); ; {
		queue, inventory, err := p.gpuQueue(ctx, spec, not, away, limit, emit)
		if err != nil {
			return supervisor.Lease{}, err
		}
		var lease supervisor.Lease
		if queue != nil {
			lease, err = queue.Place(ctx)
		} else {
			lease, err = placeOnCPUs(spec, inventory, not)
		}
		gone := agents.Unreachable(err)
		if len(gone) == 0 || ctx.Err() != nil {
			return lease, p.probed.WithUnreached(err, away...)
		}
		for _, host := range slices.Sorted(maps.Keys(gone)) {
			away = append(away, host)
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("going on without %s: %v", host, gone[host])})
		}
	}
}

// Hold implements supervisor.Holder. Agents that an earlier controller has started keep
// their leases.
func (p *placer) Hold(placement job.Placement) (held context.Context, release func()) {
	var grants []gpuqueue.Grant
	for _, h := range placement.Hosts {
		if slices.ContainsFunc(placement.On(h.Name), func(r job.Rank) bool { return len(r.Devices) > 0 }) {
			grants = append(grants, p.launcher.Adopted(h.Name))
		}
	}
	return gpuqueue.Watch(grants)
}

// check returns a supervisor.NoPlacement if the hosts could never hold a gang.
func (p *placer) check(ctx context.Context, spec job.Spec, emit func(job.Event)) error {
	queue, inventory, err := p.gpuQueue(ctx, spec, job.Excluded{}, nil, 0, emit)
	switch {
	case err != nil:
	case queue != nil:
		err = queue.Check()
	default:
		_, err = placeOnCPUs(spec, inventory, job.Excluded{})
	}
	return p.probed.WithUnreached(err)
}

// placeOnCPUs is like place, but for ranks without GPUs.
func placeOnCPUs(spec job.Spec, inventory job.Inventory, not job.Excluded) (supervisor.Lease, error) {
	placement, why, err := topology.Place(spec, inventory, not)
	var none *topology.NoPlacement
	if errors.As(err, &none) {
		return supervisor.Lease{}, supervisor.NoPlacement{Text: none.Text, Hint: none.Hint, Never: !none.Ever}
	}
	return supervisor.Lease{Placement: placement, Explanation: why, Held: context.Background(), Release: func() {}}, err
}

// gpuQueue returns the Gang that places ranks on GPUs, and the inventory. The Gang is nil if the ranks have no GPUs.
// gpuQueue sends no requests to hosts that are excluded or away, because they may not answer.
func (p *placer) gpuQueue(ctx context.Context, spec job.Spec, not job.Excluded, away []string, limit time.Duration, emit func(job.Event)) (*gpuqueue.Gang, job.Inventory, error) {
	inventory, err := p.probed.Inventory(ctx)
	if err != nil {
		return nil, inventory, err
	}
	missed := spec.GPUs > 0 && topology.GPUsPerRank(-1, inventory.Hosts) == 0
	if emit != nil {
		p.probed.ReportUnreached(emit)
		for _, text := range p.probed.News(missed) {
			emit(job.Event{Kind: job.KindNote, Text: text})
		}
	}
	gpus := topology.GPUsPerRank(spec.GPUs, inventory.Hosts)
	if gpus == 0 {
		return nil, inventory, nil
	}
	but := slices.Concat(not.Hosts, away)
	var again func() []job.Host
	if !p.simulated {
		again = func() []job.Host {
			p.probed.Look(ctx, but)
			fresh, _ := p.probed.Inventory(ctx)
			return hosts.Except(fresh.Hosts, but)
		}
		if time.Since(p.probed.LookedAt()) >= gpuqueue.LookEvery { // there has been an attempt since then
			inventory.Hosts = again()
		}
	}
	return &gpuqueue.Gang{
		NewTurn: func(host, space string) gpuqueue.Turn {
			return gpuqueue.AgentTurn{Turn: p.launcher.Turn(host, space, fmt.Sprintf("%s/%d", p.run, p.turns.Add(1)))}
		},
		Run: p.run, Command: strings.Join(spec.Command, " "), Hosts: hosts.Except(inventory.Hosts, but), Simulated: p.simulated,
		Want:    topology.Want{Ranks: spec.Ranks, GPUs: gpus, Locality: spec.Locality},
		Guessed: spec.GPUs < 0, Patience: spec.Patience, Limit: limit, Excluded: not, Emit: emit, Look: again,
	}, inventory, nil
}
