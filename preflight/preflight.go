package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/job"
)

// Surveyor returns the Facts of all hosts of the gang, in node order. It asks all hosts at the same time, and
// asks each host only once. If a host does not answer, it returns an error. Only one host compiles the script:
// for the other hosts, the Surveyor clears job.Survey.Compile.
type Surveyor interface {
	Survey(ctx context.Context, s job.Survey) ([]job.Facts, error)
	// Measure measures how fast the hosts are. It takes at most job.HealthLimit.
	Measure(ctx context.Context, m job.Measure) ([]job.Speed, error)
}

// Runner runs a gang. It returns when every rank is gone or is listed in Outcome.Unreaped. It ends the gang
// when ctx ends. Its calls of emit do not overlap, and it calls emit no more after it has returned. It creates
// Attempt.CheckpointDir on hosts that lack that directory.
type Runner interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// Gang is the gang that follows a preflight.
type Gang struct {
	None  bool // no gang follows; a job of a single rank then gets a trial, too
	Ranks int  // if the job that is checked has only a part of the gang's ranks: how many the gang has; otherwise 0
}

// Preflight checks a job before its gang is started. Surveyor, Runner, Place, Diagnose, WorldSize,
// Run, LogDir and Scratch must be set.
type Preflight struct {
	Surveyor Surveyor
	Runner   Runner
	// Place returns a place for a trial. ranks is the number of the trial's ranks, and limit is the
	// time within which the trial ends. release gives the place back.
	Place func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (place job.Placement, release func(), err error)
	// Diagnose finds why a trial failed. If the program says that it needs more ranks, WorldSize
	// returns the line that says so, and true.
	Diagnose  func(job.Evidence) job.Cause
	WorldSize func(job.Evidence) (job.Line, bool)
	Memory    memory.Memory
	// Known returns the newest run that has the given fingerprint and has failed for a reason that a new start
	// does not remove. ok is false if there is no such run. Known may be nil.
	Known func(ctx context.Context, fingerprint string) (e history.Entry, ok bool, err error)
	// Env is the environment that the ranks get in addition to the job's own variables. Memory
	// distinguishes trials in different environments.
	Env []string
	// Run is the ID of the run. The first round of the trial uses this ID. Later rounds append -trial2,
	// -trial3 and so on to it. This is necessary because launchers identify an attempt by its run and number,
	// and the number of a trial is always 0.
	Run string
	// LogDir is an existing directory for the logs of the first round of the trial. The logs
	// of later rounds go to the subdirectories trial2, trial3 and so on.
	LogDir string
	// Input identifies the standard input of this run. It is empty if the run has no standard input, and
	// UnknownInput if the standard input cannot be identified.
	Input string
	Gang  Gang // that follows the preflight
	// Private has directories of gangrun itself. Changes in them do not count as changes that the trial has
	// made.
	Private []string
	// Scratch is an existing directory. The Preflight creates the checkpoint directory of a
	// trial in it, and removes that directory afterwards.
	Scratch string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// UnknownInput is the Input of a run whose standard input may differ each time, such as a pipe.
const UnknownInput = "?"

// Check runs the static checks. If the spec asks for measurements, it then measures the hosts. Next, it emits the
// fingerprint of the job, and finds out whether the same job has failed before. If the spec asks for a trial, it runs
// the trial as the last check. After a step that has found an error, Check skips the further steps. It returns all
// findings. It emits KindTrial events about the progress of the trial, and KindStarted and KindExit events for its
// ranks. If the gang has only one rank, there is no trial, because the start of the gang itself shows the same; but
// there is a trial if Gang.None is true. If ctx was cancelled, the error is that of ctx. Any other error is a failure of
// gangrun itself.
func (p *Preflight) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if spec.Preflight == job.PreflightOff {
		return nil, nil
	}
	facts, err := p.Surveyor.Survey(ctx, Questions(spec))
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
	if !Errors(findings) && spec.Health == job.HealthQuick {
		speeds, err := p.Surveyor.Measure(ctx, p.measures(spec, facts))
		if err != nil {
			return findings, cmp.Or(ctx.Err(), fmt.Errorf("cannot measure the hosts: %w", err))
		}
		findings = append(findings, Slow(speeds, len(facts))...)
	}
	if !Errors(findings) {
		findings = append(findings, p.known(ctx, spec, facts, emit)...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if Errors(findings) || spec.Preflight != job.PreflightFull || spec.Trial.Mode == job.TrialOff || spec.Ranks < 2 && !p.Gang.None {
		return findings, nil
	}
	t := &trial{p: p, spec: spec, emit: emit}
	more, err := t.run(ctx, facts)
	return slices.Concat(findings, more), err
}

// Questions returns the Survey for the facts that the static checks of a job need of each host.
func Questions(spec job.Spec) job.Survey {
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
