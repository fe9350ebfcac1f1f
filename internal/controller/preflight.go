package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/preflight/memory"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Preflight does what the preflight of a run does, and ends as that run
// would have ended there.
func Preflight(spec job.Spec, options Options) error {
	s, err := openSession(spec, options)
	if err != nil {
		return err
	}
	return s.conclude(s.supervise(func(p parts) (runreport.Report, error) {
		if p.checker != nil {
			p.checker = reaching{p.checker, s.probed}
		}
		boss := &supervisor.Supervisor{
			Launcher: s.launcher, Placer: s, Checker: p.checker, Checkpoints: &checkpoints{},
			Diagnose: supervisor.Hiding(s.spec, diagnose.Diagnose), Emit: p.emit,
		}
		return boss.Preflight(p.ctx, supervisor.Run{ID: s.run.ID, Controller: home.Self(), LogDir: s.run.AttemptDir}, spec)
	}))
}

// preflight returns the Checker of the run; nil when there is nothing to check.
func (s *session) preflight() (supervisor.Checker, error) {
	if s.spec.Preflight == job.PreflightOff {
		return nil, nil
	}
	logs, err := s.run.AttemptDir(0)
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(s.run.Dir, "scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	return fitting{s: s, Checker: &preflight.Preflight{
		Surveyor: s,
		Runner:   s.watchGPUs(quiet{s.launcher}),
		Place: func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (job.Placement, func(), error) {
			spec := s.spec
			spec.Ranks = ranks
			lease, err := s.place(ctx, spec, job.Excluded{}, limit, emit)
			return lease.Placement, lease.Release, err
		},
		Diagnose:  supervisor.Hiding(s.spec, diagnose.Diagnose),
		WorldSize: diagnose.WorldSize,
		Memory:    memory.Memory{Dir: filepath.Join(s.home, "trials")},
		Env:       os.Environ(),
		Run:       s.run.ID,
		LogDir:    logs,
		Scratch:   scratch,
		Private:   []string{s.home},
		Alone:     s.PreflightOnly,
		Input:     inputOf(s.stdin()),
	}}, nil
}

// inputOf returns what tells standard input from that of another run: see
// preflight.Preflight. A terminal and /dev/null give a trial nothing, nor does a pipe that
// is closed or silent.
func inputOf(stdin *os.File) string {
	if stdin == nil {
		return ""
	}
	info, err := stdin.Stat()
	switch {
	case err != nil:
		return preflight.UnknownInput
	case info.Mode()&os.ModeCharDevice != 0:
		return ""
	case !info.Mode().IsRegular():
		ready := []unix.PollFd{{Fd: int32(stdin.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, pipeMillis); err == nil && ready[0].Revents&unix.POLLIN == 0 {
			return ""
		}
		return preflight.UnknownInput
	}
	at, _ := stdin.Seek(0, io.SeekCurrent) // 0 where it fails
	stat, _ := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("file %d:%d of %d bytes, changed %d, at %d", stat.Dev, stat.Ino, info.Size(), info.ModTime().UnixNano(), at)
}

// pipeMillis is how long a pipe on standard input may be silent that has something to
// say, in milliseconds.
const pipeMillis = 100

// quiet runs trials: what they print is shown only if they fail.
type quiet struct{ *launcher.Launcher }

func (q quiet) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	a.Show = job.OutputNone
	return q.Launcher.Run(ctx, a, emit)
}

// fitting is a Checker that does not try what would never fit.
type fitting struct {
	supervisor.Checker
	s *session
}

func (f fitting) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if f.s.taken != nil { // a trial that was cut short with its controller is made anew
		logs, err := f.s.run.AttemptDir(0)
		if err = errors.Join(err, os.RemoveAll(logs), os.Mkdir(logs, 0o700)); err != nil {
			return nil, err
		}
	}
	least := spec
	if spec.MinRanks > 0 { // fewer will do, where there is no room for more
		least.Ranks = spec.MinRanks
	}
	p, inventory, err := f.s.gpuPlacer(ctx, least, job.Excluded{}, nil, 0, emit)
	switch {
	case err != nil:
	case p != nil:
		err = p.Check()
	default:
		_, err = placeOnCPUs(least, inventory, job.Excluded{})
	}
	if err = f.s.probed.WithUnreached(err); err != nil {
		return nil, err
	}
	findings, err := f.Checker.Check(ctx, spec, emit)
	f.s.probed.ReportUnreached(emit) // those that were lost meanwhile
	return findings, err
}

// reaching is a Checker to which a host that is not reached is a fault. A run leaves
// it out.
type reaching struct {
	supervisor.Checker
	probed *hosts.Found
}

func (r reaching) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if err := r.probed.Wait(ctx); err != nil {
		return nil, err
	}
	r.probed.SkipNotes()
	findings, err := r.Checker.Check(ctx, spec, emit)
	return append(findings, r.probed.Faults()...), err
}

// Survey implements preflight.Surveyor, for the hosts that have been reached.
func (s *session) Survey(ctx context.Context, ask job.Survey) ([]job.Facts, error) {
	inventory, err := s.probed.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := s.launcher.Survey(ctx, inventory.Hosts, ask)
	for err != nil && ctx.Err() == nil && s.probed.Drop(err) { // a host was lost meanwhile: the others are there
		if inventory, err = s.probed.Inventory(ctx); err == nil {
			facts, err = s.launcher.Survey(ctx, inventory.Hosts, ask)
		}
	}
	if err == nil {
		s.compare(facts)
	}
	return facts, stalled(err)
}

// stalled makes an agent that has not looked at files in time the fault of a file
// system, where no other host can stand in.
func stalled(err error) error {
	if errors.As(err, new(*launcher.LookError)) {
		return supervisor.StorageError{Err: err}
	}
	return err
}
