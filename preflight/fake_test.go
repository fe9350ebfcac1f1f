package preflight

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// play is what one run of a fake gang does.
type play func(g *gang)

// gang is a fake gang that a play controls.
type gang struct {
	ctx     context.Context
	attempt job.Attempt
	emit    func(job.Event)
	outcome job.Outcome
	err     error
}

// fakeRunner runs its plays one after the other, and keeps the attempts.
type fakeRunner struct {
	t        *testing.T
	plays    []play
	attempts []job.Attempt
}

func (r *fakeRunner) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	i := len(r.attempts)
	r.attempts = append(r.attempts, a)
	if i >= len(r.plays) {
		r.t.Errorf("attempt %d is one too many", i+1)
		return job.Outcome{}, nil
	}
	if a.CheckpointDir != "" && a.Contain == nil {
		if entries, err := os.ReadDir(a.CheckpointDir); err != nil || len(entries) > 0 {
			r.t.Errorf("checkpoint directory of attempt %d: %v %v", i+1, entries, err)
		}
	}
	if info, err := os.Stat(a.LogDir); err != nil || !info.IsDir() {
		r.t.Errorf("log directory of attempt %d: %v", i+1, err)
	}
	g := &gang{ctx: ctx, attempt: a, emit: emit}
	r.plays[i](g)
	return g.outcome, g.err
}

// start emits the events of starting every rank.
func (g *gang) start() {
	for _, r := range g.attempt.Placement.Ranks {
		g.emit(job.Event{Kind: job.KindStarted, Rank: r.Rank, Host: r.Host, PID: 100 + r.Rank})
	}
	g.emit(job.Event{Kind: job.KindAllStarted, Attempt: g.attempt.Number})
}

// wait waits. If the gang is ended meanwhile, its ranks end, and wait returns false.
func (g *gang) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.ctx.Done():
		g.stop()
		return false
	}
}

// stop ends every rank as a launcher does.
func (g *gang) stop() {
	time.Sleep(300 * time.Millisecond) // a rank needs some time after SIGTERM
	for _, r := range g.attempt.Placement.Ranks {
		g.exit(job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Signalled, Signal: 15, Stopped: true})
	}
}

func (g *gang) exit(e job.Exit) {
	g.outcome.Exits = append(g.outcome.Exits, e)
	g.emit(job.Event{Kind: job.KindExit, Exit: &e})
}

func (g *gang) exits(code int) {
	for _, r := range g.attempt.Placement.Ranks {
		g.exit(job.Exit{Rank: r.Rank, Host: r.Host, Status: job.Exited, Code: code})
	}
}

func (g *gang) progress(rank int, step int64) {
	g.emit(job.Event{Kind: job.KindProgress, Rank: rank, Progress: &job.Progress{Step: step, Epoch: -1}})
}

// succeeds is a play in which the ranks succeed after a while.
func succeeds(g *gang) {
	g.start()
	if g.wait(1300 * time.Millisecond) {
		g.exits(0)
	}
}

// dies returns a play in which the ranks print a line and exit with code 1. The fake diagnosis takes the first
// word of the line as the category.
func dies(text string) play {
	return func(g *gang) {
		g.start()
		if g.wait(time.Second) {
			g.outcome.Lines = []job.Line{{Source: job.SourceStderr, Host: "h1", Text: text}}
			g.exits(1)
		}
	}
}

// hangs is a play in which the ranks live until they are ended.
func hangs(g *gang) {
	g.start()
	<-g.ctx.Done()
	g.stop()
}

// fakeDiagnose takes the first word of the first line as the category.
func fakeDiagnose(e job.Evidence) job.Cause {
	if !e.Trial || e.Ranks == 0 || len(e.Command) == 0 {
		return job.Cause{Category: job.Unknown, Text: "the evidence is not complete"}
	}
	if len(e.Lines) == 0 {
		return job.Cause{Category: job.Unknown, Signature: "exit-code", Hint: "look at its log"}
	}
	category, text, _ := strings.Cut(e.Lines[0].Text, ": ")
	return job.Cause{Category: job.Category(category), Signature: "from-" + category, Host: e.Lines[0].Host,
		Text: text, Hint: "do something about it"}
}

func fakeWorldSize(e job.Evidence) (job.Line, bool) {
	for _, l := range e.Lines {
		if strings.Contains(l.Text, "needs more ranks") {
			return l, true
		}
	}
	return job.Line{}, false
}

// fakeSurveyor returns the same facts each time.
type fakeSurveyor struct {
	facts    []job.Facts
	err      error
	surveys  []job.Survey
	speeds   []job.Speed
	measures []job.Measure
}

func (s *fakeSurveyor) Measure(ctx context.Context, m job.Measure) ([]job.Speed, error) {
	s.measures = append(s.measures, m)
	return s.speeds, errors.Join(s.err, ctx.Err())
}

func (s *fakeSurveyor) Survey(ctx context.Context, q job.Survey) ([]job.Facts, error) {
	s.surveys = append(s.surveys, q)
	return s.facts, errors.Join(s.err, ctx.Err())
}
