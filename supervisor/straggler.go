package supervisor

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/retry"
	"github.com/gangrun/gangrun/supervisor/watch"
)

// Straggled is the cause (see context.Cause) of a gang's context that ends because a rank is slow and the job's
// policy asks for another attempt in that case.
type Straggled struct{ Report job.StragglerReport }

// Error says which rank is slow, and why.
func (e Straggled) Error() string { return e.Report.Text }

// tell writes reports about stragglers to the journal.
func (g *guard) tell(found []job.StragglerReport) {
	for _, r := range found {
		e := job.Event{Kind: job.KindStraggler, Attempt: g.number, Host: r.Host, Straggler: &r, Text: r.Text}
		if r.Rank >= 0 {
			e.Rank = r.Rank
		}
		if !r.Over {
			e.Hint = watch.Advice(r.Reason)
		}
		g.emit(e)
	}
}

// leave ends a gang in which a rank stays slow, if the job's policy wants that. It does nothing if there
// would be no next attempt, because a slow gang is better than none.
func (g *guard) leave(r job.StragglerReport) {
	cause := watch.StragglerCause(r)
	action := g.policy(g.gang).Action(cause)
	if g.gang.Err() != nil || action == job.RetryNever || action == job.RetryElsewhere && !g.Elsewhere {
		return
	}
	now := retry.Past{Cause: cause, From: g.resume.best, Saved: g.resume.best, Resumed: g.resume.newest, Next: g.resume.newest, Step: g.step()}
	if g.policy(g.gang).Decide(g.before(), now, time.Now()).Action == job.Restart {
		g.end(Straggled{r})
	}
}
