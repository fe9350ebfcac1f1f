package gang

import (
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/output"
	"github.com/gangrun/gangrun/internal/agent/pulse"
	"github.com/gangrun/gangrun/internal/job"
)

// reportActivity reports what the living ranks are doing. It is called before they are
// asked to end.
func (g *Gang) reportActivity() {
	var all []job.Activity
	at, processes := hostclock.Now(), pulse.Look(g.pids())
	for _, r := range g.ranks {
		pid, ok := r.Living()
		if !ok {
			continue
		}
		begun := g.begun.Add(hostclock.Offset())
		state := job.ProcessZombie // the process has just been reaped
		if s, ok := processes.Working(pid); ok {
			state = pulse.State(s.State)
		}
		a := job.Activity{Rank: r.number, Host: g.Host, State: state, Quiet: rounded(r.quiet(at, begun)), Age: rounded(at.Sub(begun))}
		if idle, ok := r.progress.Idle(time.Now()); ok {
			idle := rounded(idle)
			a.Idle = &idle
		}
		all = append(all, a)
	}
	if len(all) > 0 {
		g.Reports.Event(job.Event{Time: at, Kind: job.KindActivity, Host: g.Host, Activity: all})
	}
}

// rounded returns a duration, to the millisecond, that is not negative.
func rounded(d time.Duration) job.Duration { return job.Duration(max(0, d).Round(time.Millisecond)) }

// quiet returns for how long the rank has printed nothing at the time now. now is by the host's clock. If the rank has
// printed nothing at all, quiet counts from begun.
func (r *Rank) quiet(now, begun time.Time) time.Duration {
	last := begun
	for _, s := range []*output.Stream{r.out, r.err} {
		if at := s.Last(); at.After(last) {
			last = at
		}
	}
	return now.Sub(last)
}
