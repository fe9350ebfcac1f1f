package preflight

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// trial is one run of the trial of one job.
type trial struct {
	p        *Preflight
	spec     job.Spec
	emit     func(job.Event)
	attempts int
	alone    bool // it used Open MPI, and was not started with it
}

// judgement is what one step of the trial shows.
type judgement string

// The judgements; but for good they are the ends of the Problems' signatures.
const (
	good         judgement = "good"
	bad          judgement = "failed"       // the gang would fail as well
	worldSize    judgement = "world-size"   // says nothing: too few ranks
	memory       judgement = "memory"       // says nothing: too few ranks for the job's memory
	inconclusive judgement = "inconclusive" // says nothing of the program
	late         judgement = "late"         // the ranks did not start in time
)

// step is a judgement with what it rests on.
type step struct {
	judgement
	result
	ranks int
	cause job.Cause // unless good or late
	line  job.Line  // of a worldSize
}

// run tries the job on one rank and then, if asked, on more.
func (t *trial) run(ctx context.Context, facts []job.Facts) ([]job.Finding, error) {
	sizes := []int{1}
	if t.spec.Trial.Ranks >= 2 {
		sizes = append(sizes, t.spec.Trial.Ranks)
	}
	key, known := identity(t.spec, facts, sources(t.spec, facts))
	if passed, ok := t.p.Memory.Recall(key, t.p.now()); ok && known {
		t.say("passed %s ago with the same program, arguments and environment; not repeated", span(t.p.now().Sub(passed)))
		return nil, nil
	}
	before := fingerprint(t.spec.CheckpointDir)
	findings, shown, err := t.steps(ctx, sizes)
	if err != nil {
		return findings, err
	}
	if changed := before.changes(fingerprint(t.spec.CheckpointDir)); len(changed) > 0 {
		findings = append(findings, lookup(CodeTrialDir).finding(Hit{
			Signature: "checkpoint-dir-touched", Path: t.spec.CheckpointDir,
			Values: about(t.spec.CheckpointDir, "files", names(changed)),
		}, 0))
	}
	if shown && known && len(findings) == 0 && !t.alone { // the gang must hear of that again
		if err := t.p.Memory.Remember(key, t.p.now()); err != nil {
			t.say("passed, but cannot be remembered: %v", err)
		}
	}
	return findings, nil
}

// steps runs the trial's steps until one fails. A step that shows nothing
// because it has too few ranks is left unsaid when another one follows. shown
// says that the last step was good.
func (t *trial) steps(ctx context.Context, sizes []int) (findings []job.Finding, shown bool, err error) {
	for i, ranks := range sizes {
		s, err := t.step(ctx, ranks)
		if err != nil {
			return findings, false, err
		}
		findings = append(findings, s.unreaped()...)
		few := s.judgement == worldSize || s.judgement == memory
		if s.judgement != good && !(few && i+1 < len(sizes)) {
			findings = append(findings, s.finding())
		}
		if s.judgement == bad {
			return findings, false, nil
		}
		shown = s.judgement == good
	}
	return findings, shown, nil
}

// step tries the job on that many ranks: once, or twice when the first time was
// ended by what may pass. A job that asks for no retries gets none here, and its
// gang does not start on the strength of a trial that was ended.
func (t *trial) step(ctx context.Context, ranks int) (step, error) {
	var s step
	for range 1 + min(1, t.spec.Retries) {
		a, release, err := t.attempt(ctx, ranks)
		if err != nil {
			return s, err
		}
		t.say("%s (passes at exit 0, %s or %s)", placed(a.Placement),
			count(t.spec.Trial.Steps, "progress line"), t.spec.Trial.Time)
		res, err := try(ctx, t.p.Runner, a, t.spec.Trial.Steps, time.Duration(t.spec.Trial.Time), t.forward)
		release()
		if a.CheckpointDir != "" {
			if err := os.RemoveAll(a.CheckpointDir); err != nil {
				t.say("cannot remove what it wrote: %v", err)
			}
		}
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err != nil {
			return s, fmt.Errorf("cannot run the trial: %w", err)
		}
		if up := res.outcome.Wireup; t.spec.MPI == job.MPIAuto && up != nil && up.Library != "" {
			t.say("it uses Open MPI (%s), which the gang is started with, then", up.Library)
			t.alone, t.spec.MPI = true, job.MPIOpenMPI // for the steps that follow; the gang is told by the event
		}
		s = t.judge(a, res)
		t.tell(s)
		if s.judgement != inconclusive {
			break
		}
	}
	return s, nil
}

// attempt makes the next attempt of the trial, with directories of its own, and
// what gives its place back.
func (t *trial) attempt(ctx context.Context, ranks int) (a job.Attempt, release func(), err error) {
	t.attempts++
	limit := StartLimit + time.Duration(t.spec.Trial.Time) + time.Duration(t.spec.Grace)
	placement, release, err := t.p.Place(ctx, ranks, limit, t.emit)
	if ctx.Err() != nil && err != nil {
		return job.Attempt{}, nil, ctx.Err()
	}
	if err != nil {
		return job.Attempt{}, nil, fmt.Errorf("cannot place a trial of %s: %w", count(ranks, "rank"), err)
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	a = job.Attempt{
		Run: t.p.Run, Number: 0, Command: t.spec.Command, Workdir: t.spec.Workdir, Placement: placement,
		Env: make(map[string]string), LogDir: t.p.LogDir, Grace: t.spec.Grace,
		Stdin: job.StdinNone, Show: t.spec.Output, Steps: t.spec.Trial.Steps,
		MPI: t.spec.MPI, InitTimeout: t.spec.InitTimeout,
	}
	if len(t.spec.Trial.Command) > 0 {
		a.Command = t.spec.Trial.Command
	}
	a.Command = slices.Concat(a.Command, t.spec.Trial.Args)
	maps.Copy(a.Env, t.spec.Env)
	maps.Copy(a.Env, t.spec.Trial.Env)
	if t.attempts > 1 {
		again := "trial" + strconv.Itoa(t.attempts)
		a.Run += "-" + again
		a.LogDir = filepath.Join(a.LogDir, again)
		if err := os.MkdirAll(a.LogDir, 0o700); err != nil {
			return a, nil, fmt.Errorf("cannot make the trial's log directory: %w", err)
		}
	}
	if t.spec.CheckpointDir != "" {
		if a.CheckpointDir, err = os.MkdirTemp(t.p.Scratch, "trial-checkpoints-"); err != nil {
			return a, nil, fmt.Errorf("cannot make the trial's checkpoint directory: %w", err)
		}
	}
	return a, release, nil
}

// judge says what an attempt shows.
func (t *trial) judge(a job.Attempt, res result) step {
	s := step{judgement: good, result: res, ranks: len(a.Placement.Ranks)}
	if res.passed != "" {
		return s
	}
	if res.late {
		s.judgement = late
		return s
	}
	evidence := job.Evidence{Ranks: s.ranks, Trial: true, Outcome: res.outcome, Lines: res.outcome.Lines, Command: a.Command}
	s.cause = t.p.Diagnose(evidence)
	if s.cause.Text == "" {
		s.cause.Text = endedHow(res.outcome)
	}
	fewer := s.ranks < t.spec.Ranks
	if line, ok := t.p.WorldSize(evidence); ok && fewer {
		s.judgement, s.line = worldSize, line
		return s
	}
	switch c := s.cause.Category; {
	case fewer && (c == job.CPUOOM || c == job.GPUOOM):
		s.judgement = memory
	case passing(c):
		s.judgement = inconclusive
		if t.spec.Retries == 0 {
			s.judgement = bad
		}
	default:
		s.judgement = bad
	}
	return s
}

// passing reports whether a cause may be gone at the next start, so that it
// says nothing of the program: a gang is never refused for it.
func passing(c job.Category) bool {
	if c.Fault() == job.FaultRun {
		return c != job.Unknown && c != ""
	}
	return c == job.Killed || c.Action() == job.RetryAgain || c.Action() == job.RetryElsewhere
}

// endedHow says how a gang ended of which no cause was found.
func endedHow(o job.Outcome) string {
	if e, ok := o.First(); ok {
		return e.String()
	}
	return "it ended before it could pass"
}

// finding puts a step that is not good into words.
func (s step) finding() job.Finding {
	code := s.code()
	var hosts []string
	if s.cause.Host != "" {
		hosts = []string{s.cause.Host}
	}
	f := lookup(code).finding(Hit{
		Signature: code + "-" + string(s.judgement), Hosts: hosts,
		Values: map[string]string{
			"ranks": count(s.ranks, "rank"), "elapsed": span(s.elapsed), "cause": s.cause.Text, "hint": s.cause.Hint,
			"line": quote(s.line.Text), "limit": span(StartLimit),
		},
	}, 0)
	if s.judgement != late {
		f.Cause = &s.cause
	}
	return f
}

// unreaped says which ranks of the step may still be running.
func (s step) unreaped() []job.Finding {
	var findings []job.Finding
	for _, u := range s.outcome.Unreaped {
		findings = append(findings, lookup(s.code()).finding(Hit{
			Signature: s.code() + "-unreaped", Hosts: []string{u.Host},
			Values: map[string]string{"ranks": "rank " + strconv.Itoa(u.Rank)},
		}, 0))
	}
	return findings
}

func (s step) code() string {
	if s.ranks > 1 {
		return CodeTrialRanks
	}
	return CodeTrial
}

// tell says how a step went.
func (t *trial) tell(s step) {
	switch s.judgement {
	case good:
		t.say("passed after %s (%s)", span(s.elapsed), s.passed)
	case bad:
		t.say("failed after %s: %s", span(s.elapsed), s.cause.Text)
	case late:
		t.say("not started within %s", span(StartLimit))
	default:
		t.say("shows nothing (%s): %s", s.judgement, s.cause.Text)
	}
}

func (t *trial) say(format string, args ...any) {
	t.emit(job.Event{Time: t.p.now(), Kind: job.KindTrial, Text: fmt.Sprintf(format, args...)})
}

// forward lets through what the journal keeps of a trial's ranks.
func (t *trial) forward(e job.Event) {
	if e.Kind == job.KindStarted || e.Kind == job.KindExit || e.Kind == job.KindWireup {
		e.Attempt = 0
		t.emit(e)
	}
}

// placed says where a trial goes, as in "2 ranks on h1 and h2".
func placed(p job.Placement) string {
	hosts := make([]string, len(p.Hosts))
	for i, h := range p.Hosts {
		hosts[i] = h.Name
	}
	if len(p.Ranks) == 1 {
		return "one rank on " + names(hosts)
	}
	return count(len(p.Ranks), "rank") + " on " + names(hosts)
}
