package supervisor

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Straggled is the cause with which a gang's context ends if a rank is slow and the job's policy wants
// another attempt.
type Straggled struct{ Report job.StragglerReport }

// Error says which rank is slow, and why.
func (e Straggled) Error() string { return e.Report.Text }

// advice has, for each reason why a rank is slow, what the user can do about it.
var advice = map[job.StragglerReason]string{
	job.SlowUnknown:  "compare its host with the others",
	job.SlowWork:     "give the ranks the same amount of work; if they have it, the CPU of its host is slower",
	job.SlowQuota:    "raise the CPU limit of its control group or container, or give the job fewer ranks there",
	job.SlowShared:   "end the other processes on its host, or leave the host out with --hosts",
	job.SlowCores:    "give each rank the same number of CPUs",
	job.SlowDisk:     "put its data and checkpoints on a faster disk, or look for what else uses the disk",
	job.SlowMemory:   "give the job fewer ranks there, or end the other processes on its host",
	job.SlowNetwork:  "look for errors and the speed of its network link (ethtool, ip -s link), and for other traffic on it",
	job.SlowThrottle: "look for the reason in nvidia-smi -q -d PERFORMANCE: heat, or a limit of power",
}

// tell writes reports about stragglers to the journal.
func (g *guard) tell(found []job.StragglerReport) {
	for _, r := range found {
		e := job.Event{Kind: job.KindStraggler, Attempt: g.number, Host: r.Host, Straggler: &r, Text: r.Text}
		if r.Rank >= 0 {
			e.Rank = r.Rank
		}
		if !r.Over {
			e.Hint = advice[r.Reason]
		}
		g.emit(e)
	}
}

// leave ends a gang in which a rank stays slow, if the job's policy wants that. It does nothing if there
// would be no next attempt, because a slow gang is better than none.
func (g *guard) leave(r job.StragglerReport) {
	cause := stragglerCause(r)
	action := g.policy(g.gang).Action(cause)
	if g.gang.Err() != nil || action == job.RetryNever || action == job.RetryElsewhere && !g.Elsewhere {
		return
	}
	now := Past{Cause: cause, From: g.resume.best, Saved: g.resume.best, Resumed: g.resume.newest, Next: g.resume.newest, Step: g.step()}
	if g.policy(g.gang).Decide(g.before(), now, time.Now()).Action == job.Restart {
		g.end(Straggled{r})
	}
}

// stragglerCause returns the cause of an attempt that gangrun ended because a rank was slow.
func stragglerCause(r job.StragglerReport) job.Cause {
	return job.Cause{
		Category: job.Straggler, Signature: "slow-" + string(r.Reason), Rank: r.Rank, Host: r.Host, Confidence: 0.8,
		Text: r.Text, Hint: advice[r.Reason],
	}
}
