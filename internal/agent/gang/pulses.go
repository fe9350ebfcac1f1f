package gang

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/pulse"
	"github.com/gangrun/gangrun/internal/job"
)

// sendPulses reports the pulses of the ranks, as often as the controller wants. If the reports take much CPU time,
// sendPulses reports less often. It returns when ctx ends.
func (g *Gang) sendPulses(ctx context.Context) {
	least := time.Duration(g.Start.PulseMs) * time.Millisecond
	if least <= 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var sampler pulse.Sampler
	next := time.NewTimer(least)
	defer next.Stop()
	for every := least; ; {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		before := pulse.Spent()
		p := g.pulses(&sampler)
		every = (3*every + pulse.Pace(least, pulse.Spent()-before)) / 4 // a single slow round counts little
		p.Every = rounded(every)
		g.Reports.Pulses(p)
		next.Reset(every)
	}
}

func (g *Gang) pulses(sampler *pulse.Sampler) job.Pulses {
	all := job.Pulses{Host: g.Host, Time: hostclock.Now(), MemoryStall: pulse.MemoryStall()}
	living := map[int]int{} // PIDs, by rank
	for _, r := range g.ranks {
		if pid, ok := r.Living(); ok {
			living[r.number] = pid
		}
	}
	processes := sampler.Round(slices.Collect(maps.Values(living)), g.Start.Spread)
	for _, r := range g.ranks {
		pid, ok := living[r.number]
		if !ok {
			continue
		}
		p, ok := sampler.Sample(processes, r.number, pid)
		if !ok {
			continue
		}
		p.Output = r.out.Written() + r.err.Written()
		said := r.progress.Sample()
		p.Progress, p.Moves, p.Beats, p.Raised = said.Latest, said.Moves, said.Beats, said.Raised
		p.Phase = g.wireup.Phase(r.number)
		p.Stdin = r.stdin != nil && r.waitsForStdin()
		all.Ranks = append(all.Ranks, p)
	}
	return all
}

// pids returns the PIDs of the ranks that live.
func (g *Gang) pids() (all []int) {
	for _, r := range g.ranks {
		if pid, ok := r.Living(); ok {
			all = append(all, pid)
		}
	}
	return all
}

// started returns the PIDs of all ranks that were started, including those that have ended.
func (g *Gang) started() (all []int) {
	for _, r := range g.ranks {
		if child := r.child.Load(); child != nil {
			all = append(all, child.PID)
		}
	}
	return all
}
