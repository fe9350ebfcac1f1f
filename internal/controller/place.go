package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"github.com/gangrun/gangrun/internal/controller/gpuqueue"
	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/topology"
)

// Place implements supervisor.Placer. CPU ranks hold nothing that could be
// lost, so their lease lasts.
func (s *session) Place(ctx context.Context, spec job.Spec, not job.Excluded, emit func(job.Event)) (supervisor.Lease, error) {
	lease, err := s.place(ctx, spec, not, 0, emit)
	var none supervisor.NoPlacement
	for smaller := spec; errors.As(err, &none) && spec.MinRanks > 0 && smaller.Ranks > spec.MinRanks; {
		smaller.Ranks--
		var other error
		if lease, other = s.place(ctx, smaller, not, 0, emit); other == nil {
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("a gang of %s, for want of room for more: %s", text.Count(smaller.Ranks, "rank"), none.Text)})
			return lease, nil
		}
		if !errors.As(other, new(supervisor.NoPlacement)) {
			return lease, other
		}
	}
	return lease, err
}

// place is Place for what needs its place for no longer than limit; 0 is not
// known.
func (s *session) place(ctx context.Context, spec job.Spec, not job.Excluded, limit time.Duration, emit func(job.Event)) (supervisor.Lease, error) {
	for away := []string(nil); ; {
		p, inventory, err := s.gpuPlacer(ctx, spec, not, away, limit, emit)
		if err != nil {
			return supervisor.Lease{}, err
		}
		var lease supervisor.Lease
		if p != nil {
			lease, err = p.Place(ctx)
		} else {
			lease, err = placeOnCPUs(spec, inventory, not)
		}
		gone := agents.Unreachable(err)
		if len(gone) == 0 || ctx.Err() != nil {
			return lease, s.probed.WithUnreached(err, away...)
		}
		for _, host := range slices.Sorted(maps.Keys(gone)) {
			away = append(away, host)
			emit(job.Event{Kind: job.KindNote, Text: fmt.Sprintf("going on without %s: %v", host, gone[host])})
		}
	}
}

// Hold implements supervisor.Holder: agents that an earlier controller has started go
// on holding what they have.
func (s *session) Hold(p job.Placement) (held context.Context, release func()) {
	var grants []gpuqueue.Grant
	for _, h := range p.Hosts {
		if slices.ContainsFunc(p.On(h.Name), func(r job.Rank) bool { return len(r.Devices) > 0 }) {
			grants = append(grants, s.launcher.Adopted(h.Name))
		}
	}
	return gpuqueue.Watch(grants)
}

// Silent implements supervisor.Looker. Simulated hosts answer as this machine does.
func (s *session) Silent(ctx context.Context, hosts []string) map[string]string {
	if s.spec.Loopback > 0 {
		return nil
	}
	return s.probed.Silent(ctx, hosts)
}

// placeOnCPUs is place for ranks without GPUs.
func placeOnCPUs(spec job.Spec, inventory job.Inventory, not job.Excluded) (supervisor.Lease, error) {
	placement, why, err := topology.Place(spec, inventory, not)
	var none *topology.NoPlacement
	if errors.As(err, &none) {
		return supervisor.Lease{}, supervisor.NoPlacement{Text: none.Text, Hint: none.Hint, Never: !none.Ever}
	}
	return supervisor.Lease{Placement: placement, Explanation: why, Held: context.Background(), Release: func() {}}, err
}

// gpuPlacer returns who places ranks on GPUs, nil where they have none, and what
// there is. Hosts that are excluded or away are not asked for anything: they may not
// answer.
func (s *session) gpuPlacer(ctx context.Context, spec job.Spec, not job.Excluded, away []string, limit time.Duration, emit func(job.Event)) (*gpuqueue.Gang, job.Inventory, error) {
	inventory, err := s.probed.Inventory(ctx)
	if err != nil {
		return nil, inventory, err
	}
	missed := spec.GPUs > 0 && topology.GPUsPerRank(-1, inventory.Hosts) == 0
	if emit != nil {
		s.probed.ReportUnreached(emit)
		for _, text := range s.probed.News(missed) {
			emit(job.Event{Kind: job.KindNote, Text: text})
		}
	}
	gpus := topology.GPUsPerRank(spec.GPUs, inventory.Hosts)
	if gpus == 0 {
		return nil, inventory, nil
	}
	but := slices.Concat(not.Hosts, away)
	var again func() []job.Host
	if spec.Loopback == 0 {
		again = func() []job.Host {
			s.probed.Look(ctx, but)
			fresh, _ := s.probed.Inventory(ctx) // which is there
			return hosts.Except(fresh.Hosts, but)
		}
		if time.Since(s.probed.LookedAt()) >= gpuqueue.LookEvery { // an attempt has run since
			inventory.Hosts = again()
		}
	}
	return &gpuqueue.Gang{
		NewTurn: func(host, space string) gpuqueue.Turn {
			return gpuqueue.AgentTurn{Turn: s.launcher.Turn(host, space, fmt.Sprintf("%s/%d", s.run.ID, s.turns.Add(1)))}
		},
		Run: s.run.ID, Command: strings.Join(spec.Command, " "), Hosts: hosts.Except(inventory.Hosts, but), Simulated: spec.Loopback > 0,
		Want:    topology.Want{Ranks: spec.Ranks, GPUs: gpus, Locality: spec.Locality},
		Guessed: spec.GPUs < 0, Patience: spec.Patience, Limit: limit, Excluded: not, Emit: emit, Look: again,
	}, inventory, nil
}
