package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// trial is one run of the trial of one job.
type trial struct {
	p        *Preflight
	spec     job.Spec
	emit     func(job.Event)
	attempts int
	wireup   *job.Wireup // set if the trial used Open MPI and was not started with it
	changed  []job.Changed
}

// mostTried is the number of ranks of the largest gang that is tried with all of its ranks. placeLimit is how
// long such a trial waits for a place. Both are small, because a trial must be cheap.
const (
	mostTried  = 64
	placeLimit = 10 * time.Second
)

// run tries the job on one rank. If that fails in a way that more ranks could fix, run tries it on
// more.
func (t *trial) run(ctx context.Context, facts []job.Facts) ([]job.Finding, error) {
	key := t.key(facts)
	if t.recall(key) {
		return nil, nil
	}
	findings, last, err := t.steps(ctx)
	var cannot *job.UncontainedError
	if errors.As(err, &cannot) {
		return []job.Finding{t.uncontained(cannot)}, nil
	}
	if err != nil {
		return findings, err
	}
	findings = append(findings, t.files()...)
	if last.judgement == good && len(findings) == 0 {
		t.remember(key, last.ranks)
	}
	return findings, nil
}

// steps runs the rounds of the trial until one of them passes or shows that the gang would fail. It returns the
// last round.
func (t *trial) steps(ctx context.Context) (findings []job.Finding, last step, err error) {
	for i, ranks := range sizes(t.spec) {
		s, err := t.step(ctx, ranks)
		if errors.Is(err, errNotCheap) || i > 0 && ctx.Err() == nil && errors.As(err, new(placeError)) {
			break
		}
		if err != nil {
			return findings, last, err
		}
		last = s
		findings = append(findings, s.unreaped()...)
		if s.judgement != few && s.judgement != worldSize {
			break
		}
	}
	if last.judgement != good {
		spec := t.spec
		spec.Ranks = max(spec.Ranks, t.p.Gang.Ranks)
		findings = append(findings, last.finding(spec))
	}
	return findings, last, nil
}

// sizes returns the numbers of ranks on which a job is tried, one after the other. The first is
// that of the spec. The second is two, which is enough for most programs that do not run on one
// rank. The last is the number of ranks of the gang.
func sizes(spec job.Spec) []int {
	first := max(1, spec.Trial.Ranks)
	all := []int{first}
	if first < 2 && spec.Ranks > 2 {
		all = append(all, 2)
	}
	if first < spec.Ranks && spec.Ranks <= mostTried {
		all = append(all, spec.Ranks)
	}
	return all
}

// step tries the job with that many ranks. If the cause of a failure may be temporary, it tries a second time,
// unless the job allows no retries.
func (t *trial) step(ctx context.Context, ranks int) (step, error) {
	var s step
	for range 1 + min(1, t.spec.Retries) {
		a, release, err := t.attempt(ctx, ranks)
		if err != nil {
			return s, err
		}
		t.begin(a)
		res, err := try(ctx, t.p.Runner, a, t.spec.Trial.Steps, time.Duration(t.spec.Trial.Time), t.forward)
		release()
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err != nil {
			return s, fmt.Errorf("cannot run the trial: %w", err)
		}
		t.changed = append(t.changed, res.outcome.Changed...)
		if up := res.outcome.Wireup; t.spec.MPI == job.MPIAuto && up != nil && up.Library != "" {
			t.sayOpenMPI(up)
			t.wireup, t.spec.MPI = up, job.MPIOpenMPI // for the following steps; the gang gets it from the event
		}
		s = t.judge(a, res)
		t.report(s)
		if s.judgement != inconclusive {
			break
		}
	}
	return s, nil
}

// report tells the user the result of a step.
func (t *trial) report(s step) {
	switch s.judgement {
	case good:
		t.say("passed after %s (%s)", text.Span(s.elapsed), s.passed)
	case bad:
		t.say("failed after %s: %s", text.Span(s.elapsed), s.cause.Text)
	case few:
		t.say("failed after %s; it may need more ranks: %s", text.Span(s.elapsed), s.cause.Text)
	case waiting:
		t.say("ended after %s: the program waits for standard input, which is kept for the gang", text.Span(s.elapsed))
	case late:
		t.say("not started within %s", text.Span(StartLimit))
	default:
		t.say("not conclusive (%s): %s", s.judgement, s.cause.Text)
	}
}

// begin tells the user that a step begins.
func (t *trial) begin(a job.Attempt) {
	text := fmt.Sprintf("%s (passes at exit 0, %s or %s)", placed(a.Placement), text.Count(t.spec.Trial.Steps, "progress line"), t.spec.Trial.Time)
	t.emit(job.Event{Time: t.p.now(), Kind: job.KindTrial, Text: text, Placement: &a.Placement, LogDir: a.LogDir})
}

func (t *trial) say(format string, args ...any) {
	t.emit(job.Event{Time: t.p.now(), Kind: job.KindTrial, Text: fmt.Sprintf(format, args...)})
}

// forward emits those events of a trial's ranks that the journal keeps.
func (t *trial) forward(e job.Event) {
	switch e.Kind {
	case job.KindStarted, job.KindExit, job.KindWireup, job.KindGPU:
		e.Attempt = 0
		t.emit(e)
	}
}

// placed describes where a trial runs, as in "2 ranks on h1 and h2".
func placed(p job.Placement) string {
	hosts := make([]string, len(p.Hosts))
	for i, h := range p.Hosts {
		hosts[i] = h.Name
	}
	if len(p.Ranks) == 1 {
		return "one rank on " + names(hosts)
	}
	return text.Count(len(p.Ranks), "rank") + " on " + names(hosts)
}
