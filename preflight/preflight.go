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

// Surveyor returns the Facts of all hosts of the gang, in node order. It asks the hosts at
// the same time and only once. If a host does not answer, it returns an error. Only one
// host of the gang compiles: the Surveyor clears Compile for the others.
type Surveyor interface {
	Survey(ctx context.Context, s job.Survey) ([]job.Facts, error)
}

// Runner runs a gang to its end. It returns only when every rank is gone or is named in
// Outcome.Unreaped. It ends the gang if ctx is done. It makes one call of emit at a time,
// and none after it has returned. It creates Attempt.CheckpointDir on hosts that lack it.
type Runner interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Preflight checks a job before its gang is started. Every field but Memory,
// Env and Now is needed.
type Preflight struct {
	Surveyor Surveyor
	Runner   Runner
	// Place returns a place for that many ranks of a trial that ends within limit, and a
	// function that gives it back.
	Place func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (place job.Placement, release func(), err error)
	// Diagnose finds why a trial failed. WorldSize recognises a program that only complains
	// of too few ranks.
	Diagnose  func(job.Evidence) job.Cause
	WorldSize func(job.Evidence) (job.Line, bool)
	Memory    memory.Memory
	// Env is the environment that the ranks get besides the job's own variables.
	// The Memory distinguishes trials in different environments.
	Env []string
	// Run is the ID of the run. The first attempt of the trial uses it as it is, each
	// further one with -trial2, -trial3 and so on appended. Launchers identify an attempt
	// by run and number, and the number of a trial is always 0.
	Run string
	// LogDir is an existing directory for the logs of the first attempt. Those of further
	// attempts go to trial2, trial3 and so on in it.
	LogDir string
	// Input identifies the standard input of this run. It is empty if there is none, and
	// UnknownInput if it cannot be identified.
	Input string
	// Alone is true if no gang follows. A job of a single rank then gets a trial, too.
	Alone bool
	// Private are directories of gangrun itself. Changes there are not taken for changes by the
	// trial.
	Private []string
	// Scratch is an existing directory. The directory that a trial uses as its checkpoint
	// directory is created in it, and removed afterwards.
	Scratch string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// UnknownInput is an Input that may differ each time, such as a pipe.
const UnknownInput = "?"

// Check runs the static checks and, if they find no error and the spec asks for it, the trial. It
// returns all findings. It emits KindTrial events about the progress of the trial, and KindStarted
// and KindExit for its ranks. A gang of one rank gets no trial unless Alone is set, since the gang
// itself shows what a trial would. The error is that of ctx if ctx was cancelled, and otherwise a
// failure of gangrun.
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
		Command: spec.Command, Workdir: spec.RankDir(), Box: spec.Box(), Env: variables(spec.Env), Inputs: spec.Inputs,
		CheckpointDir: spec.CheckpointDir, Compile: true, MPI: spec.MPI, GPUs: spec.GPUs,
	}
}

func (p *Preflight) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}
