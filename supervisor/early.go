package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor/earlystop"
	"github.com/gangrun/gangrun/supervisor/retry"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// StoppedEarly is the cause (see context.Cause) of a gang's context that ends because of a curve of the job.
type StoppedEarly struct{ Verdict job.CurveVerdict }

// Error says what the curve shows.
func (e StoppedEarly) Error() string { return e.Verdict.Text }

// curve decides what to do about a verdict on a curve, writes it to the journal, and ends the gang if
// necessary.
func (g *guard) curve(e job.Event, emit func(job.Event)) {
	v := *e.Curve
	v.Action = g.spec.EarlyStop.For(v.Kind)
	if v.Action == job.EarlyOff {
		return
	}
	if v.Action == job.EarlyEnd && (!v.Sure || g.gang.Err() != nil) {
		v.Action = job.EarlyAdvise
	}
	e.Curve, e.Text, e.Hint = &v, runreport.CurveText(v), earlystop.Hint(v.Kind)
	if why := earlystop.NeverSure(v.Kind, g.spec); why != "" {
		e.Hint += "; " + why
	}
	if v.Sure && g.spec.EarlyStop.For(v.Kind) == job.EarlyAdvise {
		e.Hint = strings.TrimPrefix(fmt.Sprintf("%s; with early-stop: {%s: stop}, gangrun ends such a run", e.Hint, v.Kind), "; ")
	}
	emit(e)
	if v.Action == job.EarlyEnd {
		g.end(StoppedEarly{v})
	}
}

// maxSpoilt is the maximum number of checkpoints that are examined after a divergence.
const maxSpoilt = 100

// spoilt returns the checkpoints from which a job that has diverged must not start, because they were written after the
// rise that v has found.
func (l *loop) spoilt(ctx context.Context, past []retry.Past, v job.CurveVerdict) (all []job.Checkpoint) {
	for len(all) < maxSpoilt {
		c, _, ok := l.lookAvoiding(ctx, append(slices.Clip(past), retry.Past{Spoilt: all}))
		if !ok || c == nil || !earlystop.MaySpoil(*c, v) {
			return all
		}
		all = append(all, *c)
	}
	return all
}

// skipSteps is the variable that has Diverge.SkipSteps.
const skipSteps = "GANGRUN_SKIP_STEPS"

// env returns the user's variables for the next attempt. If the job has diverged and goes back to an earlier
// checkpoint, env adds skipSteps, if it applies, and the user's variables for this case.
func (l *loop) env() map[string]string {
	past := l.before()
	last := -1
	for i, p := range past {
		if retry.CategoryOf(p.Cause) == job.ModelDiverged {
			last = i
		}
	}
	if last < 0 || l.spec.RetryOnDiverge.Resume != job.DivergeEarlier {
		return l.spec.Env
	}
	env := map[string]string{}
	maps.Copy(env, l.spec.Env)
	if n := l.spec.RetryOnDiverge.SkipSteps; n > 0 && (last+1 == len(past) || retry.SameCheckpoint(past[last+1].Resumed, l.resume.newest)) {
		env[skipSteps] = strconv.Itoa(n)
	}
	maps.Copy(env, l.spec.RetryOnDiverge.Env)
	return env
}
