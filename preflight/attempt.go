package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// errNotCheap means that a trial with as many ranks as the gang would cost about as much as
// starting the gang, or would show less: the ranks do not fit on one host, or would have to wait
// for a place.
var errNotCheap = errors.New("the gang's own size is not cheap to try")

// placeError is the error if there is no place for a step of the trial.
type placeError struct{ error }

// Unwrap returns the reason why no place was found.
func (e placeError) Unwrap() error { return e.error }

// attempt returns the attempt for the next round of the trial, with its own directories, and a function that
// releases its place and removes directories that are no longer needed.
func (t *trial) attempt(ctx context.Context, ranks int) (job.Attempt, func(), error) {
	placement, release, err := t.place(ctx, ranks)
	if err != nil {
		return job.Attempt{}, nil, err
	}
	a, err := t.fill(placement)
	if err != nil {
		release()
		return job.Attempt{}, nil, err
	}
	return a, func() {
		release()
		if a.CheckpointDir != "" && a.Contain == nil {
			if err := os.RemoveAll(a.CheckpointDir); err != nil {
				t.say("cannot remove what it wrote: %v", err)
			}
		}
	}, nil
}

// place finds a place for a step with that many ranks. If this is the number of ranks of the gang, place looks
// for one host, and does not wait.
func (t *trial) place(ctx context.Context, ranks int) (job.Placement, func(), error) {
	limit := StartLimit + time.Duration(t.spec.Trial.Time) + time.Duration(t.spec.Grace)
	within, own := ctx, ranks == t.spec.Ranks && ranks > max(2, t.spec.Trial.Ranks)
	if own {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, placeLimit)
		defer cancel()
	}
	placement, release, err := t.p.Place(within, ranks, limit, t.emit)
	switch {
	case err != nil && ctx.Err() != nil:
		return placement, nil, ctx.Err()
	case err != nil && own:
		return placement, nil, errNotCheap
	case err != nil:
		return placement, nil, placeError{fmt.Errorf("cannot place a trial of %s: %w", text.Count(ranks, "rank"), err)}
	case own && len(placement.Hosts) > 1:
		release()
		return placement, nil, errNotCheap
	}
	return placement, release, nil
}

// fill makes the attempt for a placement.
func (t *trial) fill(placement job.Placement) (a job.Attempt, err error) {
	t.attempts++
	a = job.Attempt{
		Run: t.p.Run, Number: 0, Command: t.spec.Command, Workdir: t.spec.RankDir(), Box: t.spec.Box(), Placement: placement,
		Env: make(map[string]string), LogDir: t.p.LogDir, Grace: t.spec.Grace,
		Stdin: t.stdin(len(placement.Ranks)), TTY: t.spec.TTY, Show: t.spec.Output, Steps: t.spec.Trial.Steps, Progress: t.spec.Progress,
		MPI: t.spec.MPI, EnvCompat: t.spec.EnvCompat, InitTimeout: t.spec.InitTimeout, Retries: t.spec.Retries, GPUVisibility: t.spec.GPUVisibility, Hints: services,
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
			return a, fmt.Errorf("cannot make the trial's log directory: %w", err)
		}
	}
	if t.spec.Trial.Mode != job.TrialUncontained {
		c, dir := contained(t.spec, a.Command, t.p.Run)
		a.Contain, a.CheckpointDir = &c, dir
		return a, nil
	}
	a.Watch = &job.FileWatch{Dirs: append([]string{t.spec.Workdir}, directories(t.spec, a.Command)...), But: t.p.Private}
	if t.spec.CheckpointDir != "" {
		a.Watch.Dirs = append(a.Watch.Dirs, t.spec.CheckpointDir)
		if a.CheckpointDir, err = os.MkdirTemp(t.p.Scratch, "trial-checkpoints-"); err != nil {
			return a, fmt.Errorf("cannot make the trial's checkpoint directory: %w", err)
		}
	}
	return a, nil
}

// stdin returns which rank of a trial gets standard input. This is the rank that gets it in the gang, if the
// trial has that rank.
func (t *trial) stdin(ranks int) job.Stdin {
	if t.spec.Stdin == job.StdinAll {
		return job.StdinAll
	}
	for rank := range ranks {
		if t.spec.Stdin.Feeds(rank) {
			return t.spec.Stdin
		}
	}
	return job.StdinNone
}
