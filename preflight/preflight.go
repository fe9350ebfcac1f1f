package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
)

// Surveyor asks all hosts of the gang for their Facts at the same time, and returns
// them in node order. The order is that of one round trip: a host that does
// not answer is an error. Compile is meant for one host of the gang: the
// Surveyor clears it for the others.
type Surveyor interface {
	Survey(ctx context.Context, s job.Survey) ([]job.Facts, error)
}

// Runner starts a gang and ends it: it returns only when every rank is gone or
// is named in Outcome.Unreaped, and cancelling ctx means to end the gang. It
// calls emit one at a time and never after it has returned. It makes
// Attempt.CheckpointDir on hosts that lack it.
type Runner interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Preflight checks a job before its gang is started. Every field but Memory,
// Env and Now is needed.
type Preflight struct {
	Surveyor Surveyor
	Runner   Runner
	// Place returns where that many ranks of a trial go, which ends within limit, and
	// what gives the place back.
	Place func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (place job.Placement, release func(), err error)
	// Diagnose finds why a trial failed; WorldSize recognises a program that only
	// complains of too few ranks.
	Diagnose  func(job.Evidence) job.Cause
	WorldSize func(job.Evidence) (job.Line, bool)
	Memory    memory.Memory
	// Env is the environment that the ranks get besides the job's own variables.
	// The Memory distinguishes trials in different environments.
	Env []string
	// Run is the run's identity. The trial's first attempt has it too; each
	// further one has it with -trial2, -trial3 ... behind, since launchers know
	// an attempt by run and number, and a trial's number is always 0.
	Run string
	// LogDir exists; the first attempt's logs go there, those of further ones
	// into trial2, trial3 ... in it.
	LogDir string
	// Input identifies the standard input of this run. It is empty if there is none, and
	// UnknownInput if it cannot be identified.
	Input string
	// Alone says that no gang follows: one of a single rank is then tried as well.
	Alone bool
	// Private are directories of gangrun's own: what changes there is not the job's.
	Private []string
	// Scratch exists; what a trial takes for its checkpoint directory is made in
	// it, and removed afterwards.
	Scratch string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
}

// UnknownInput is an Input that may be another one each time, as a pipe is.
const UnknownInput = "?"

// Check runs the static checks and, when they find no error and the spec asks
// for it, the trial. It returns everything that was found; emit gets KindTrial
// events that say how the trial goes, and the trial's KindStarted and KindExit.
// A gang of one is its own trial: none is run, unless nothing follows. The error is ctx's own when ctx
// was cancelled, else one of gangrun's.
func (p *Preflight) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if spec.Preflight == job.PreflightOff {
		return nil, nil
	}
	facts, err := p.Surveyor.Survey(ctx, survey(spec))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot survey the hosts: %w", err)
	}
	if len(facts) == 0 {
		return nil, errors.New("cannot survey the hosts: none answered")
	}
	findings := Static(spec, facts)
	if Errors(findings) || spec.Preflight != job.PreflightFull || spec.Trial.Mode == job.TrialOff || spec.Ranks < 2 && !p.Alone {
		return findings, nil
	}
	t := &trial{p: p, spec: spec, emit: emit}
	more, err := t.run(ctx, facts)
	return slices.Concat(findings, more), err
}

// survey returns what the hosts are asked.
func survey(spec job.Spec) job.Survey {
	return job.Survey{
		Command: spec.Command, Workdir: spec.Workdir, Env: variables(spec.Env), Inputs: spec.Inputs,
		CheckpointDir: spec.CheckpointDir, Compile: true, MPI: spec.MPI,
	}
}

func (p *Preflight) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}
