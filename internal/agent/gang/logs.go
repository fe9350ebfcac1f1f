package gang

import (
	"cmp"
	"sync"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
)

// logFailure records whether the output of ranks could not be written to their logs.
type logFailure struct {
	once    sync.Once
	release chan struct{} // closed when pumps must stop trying to write
}

// logStuck is called by pumps that cannot write to their log. At the first call, it asks for the end of the gang,
// unless the gang is over already.
func (g *Gang) logStuck(err error) {
	g.logs.once.Do(func() {
		if g.phase.get() < Over {
			g.RequestStopFor(-1, job.ReasonNone, err.Error())
			return
		}
		g.Reports.Lines(job.Line{Source: job.SourceAgent, Host: g.Host, Rank: -1, Time: hostclock.Now(), Text: err.Error()})
	})
}

// reportLostOutput reports ranks that exited with code 0, but whose output could not be written completely. Such a rank
// has failed.
func (g *Gang) reportLostOutput() {
	for _, r := range g.ranks {
		child := r.child.Load()
		lost := cmp.Or(r.out.Loss(), r.err.Loss())
		if lost == nil || child == nil || !child.Ended() {
			continue
		}
		if exit := exitOf(r.number, child, g.Host, false); exit.Good() {
			exit.Reason = job.ReasonLogWriteFailed
			exit.Fault = "not all that it printed could be kept: " + lost.Error()
			g.Reports.Event(job.Event{Time: exit.Time, Kind: job.KindExit, Exit: &exit})
		}
	}
}
