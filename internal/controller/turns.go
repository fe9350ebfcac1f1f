package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/mpiexec"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/supervisor"
)

// RunTurns runs a job of gangrun mpiexec to its end, as Run does. turns says how many ranks each host takes in turn.
// Without turns, RunTurns places ranks as Run does.
func RunTurns(spec job.Spec, options Options, turns []mpiexec.Turn) error {
	s, err := openSession(spec, options)
	if err != nil {
		return err
	}
	return s.conclude(s.toEnd(turnPlacer{placer: s.placer, here: s.dialer.Here, turns: turns}))
}

// turnPlacer places ranks as mpiexec does. Each host in turn takes the number of ranks that its
// turn allows. After the last host, it is the first host's turn again.
type turnPlacer struct {
	*placer
	here  func(host string) bool // reports whether a host of the job is this machine
	turns []mpiexec.Turn
}

// Place implements supervisor.Placer.
func (t turnPlacer) Place(ctx context.Context, spec job.Spec, excluded job.Excluded, emit func(job.Event)) (supervisor.Lease, error) {
	if len(t.turns) == 0 {
		return t.placer.Place(ctx, spec, excluded, emit)
	}
	there, err := t.probed.Inventory(ctx)
	if err != nil {
		return supervisor.Lease{}, err
	}
	t.probed.ReportUnreached(emit)
	turns := slices.Clone(t.turns)
	placed := 0
	for i, turn := range turns {
		if placed >= spec.Ranks {
			turns = turns[:i] // the hosts of the other turns need not exist
			break
		}
		placed += turn.Ranks
		at := slices.IndexFunc(there.Hosts, func(h job.Host) bool { return h.Name == turn.Host })
		if at < 0 && (turn.Host == thishost.Name() || turn.Host == thishost.Localhost) {
			at = slices.IndexFunc(there.Hosts, func(h job.Host) bool { return t.here(h.Name) })
		}
		if at < 0 {
			return supervisor.Lease{}, t.probed.WithUnreached(supervisor.NoPlacement{Text: fmt.Sprintf("host %q cannot be used", turn.Host), Hint: "leave it out", Never: true})
		}
		turns[i].Host = there.Hosts[at].Name
	}
	placement := mpiexec.Deal(spec.Ranks, turns, there.Hosts)
	var why job.Explanation
	for _, h := range placement.Hosts {
		why.Why = append(why.Why, fmt.Sprintf("host %s takes %d of %d ranks, in the order of the hosts", h.Name, len(placement.On(h.Name)), spec.Ranks))
	}
	return supervisor.Lease{Placement: placement, Explanation: why, Held: context.Background(), Release: func() {}}, nil
}
