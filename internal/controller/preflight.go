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
	"github.com/gangrun/gangrun/internal/diagnose/worldsize"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/preflight/memory"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/runreport"
	"github.com/gangrun/gangrun/supervisor/secret"
)

// Preflight runs only the preflight of a job. It ends like a run that stops after its preflight.
func Preflight(spec job.Spec, options Options) error {
	s, err := openSession(spec, options)
	if err != nil {
		return err
	}
	return s.conclude(s.supervise(func(p parts) (runreport.Report, error) {
		if p.checker != nil {
			p.checker = reachChecker{p.checker, s.probed}
		}
		sup := &supervisor.Supervisor{
			Launcher: s.launcher, Placer: s.placer, Checker: p.checker, Checkpoints: &checkpoints{},
			Diagnose: secret.Hiding(s.spec, s.diagnose), Emit: p.emit,
		}
		return sup.Preflight(p.ctx, supervisor.Run{ID: s.run.ID, Controller: home.Self(), Batch: batchJob(), Findings: jobcheck.Vain(spec), LogDir: s.run.AttemptDir}, spec)
	}))
}

// preflight returns the Checker of the run. It returns nil if there is nothing to check.
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
	return fitChecker{placer: s.placer, logs: logs, again: s.taken != nil, Checker: &preflight.Preflight{
		Surveyor: s.surveyor,
		Runner:   s.watchGPUs(quietLauncher{s.launcher}),
		Place: func(ctx context.Context, ranks int, limit time.Duration, emit func(job.Event)) (job.Placement, func(), error) {
			spec := s.spec
			spec.Ranks = ranks
			lease, err := s.placer.place(ctx, spec, job.Excluded{}, limit, emit)
			return lease.Placement, lease.Release, err
		},
		Diagnose:  secret.Hiding(s.spec, s.diagnose),
		WorldSize: worldsize.Find,
		Memory:    memory.Memory{Dir: filepath.Join(s.home, "trials")},
		Known:     s.known,
		Env:       os.Environ(),
		Run:       s.run.ID,
		LogDir:    logs,
		Scratch:   scratch,
		Private:   []string{s.home},
		Gang:      preflight.Gang{None: s.PreflightOnly, Ranks: s.GangRanks},
		Input:     inputOf(s.stdin()),
	}}, nil
}

// inputOf returns a text that differs if standard input differs (see preflight.Preflight). The text is empty for a
// terminal, for /dev/null, and for a pipe that is closed or silent, because a trial reads nothing from these.
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
	at, _ := stdin.Seek(0, io.SeekCurrent) // at is 0 if Seek fails
	stat, _ := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("file %d:%d of %d bytes, changed %d, at %d", stat.Dev, stat.Ino, info.Size(), info.ModTime().UnixNano(), at)
}

// pipeMillis is how long inputOf waits for the first byte of a pipe, in milliseconds.
const pipeMillis = 100

// quietLauncher runs trials. It shows the output of a trial only if the trial fails.
type quietLauncher struct{ *launcher.Launcher }

func (q quietLauncher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	a.Show = job.OutputNone
	return q.Launcher.Run(ctx, a, emit)
}

// fitChecker is a Checker that first checks whether the hosts could ever hold the gang.
type fitChecker struct {
	supervisor.Checker
	placer *placer
	logs   string // the directory of the trial's logs
	again  bool   // an earlier controller may have begun the checks
}

// Check implements supervisor.Checker.
func (f fitChecker) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if f.again { // a trial that ended together with its controller is repeated
		if err := errors.Join(os.RemoveAll(f.logs), os.Mkdir(f.logs, 0o700)); err != nil {
			return nil, err
		}
	}
	least := spec
	if spec.MinRanks > 0 { // if there is no room for more ranks
		least.Ranks = spec.MinRanks
	}
	if err := f.placer.check(ctx, least, emit); err != nil {
		return nil, err
	}
	findings, err := f.Checker.Check(ctx, spec, emit)
	f.placer.probed.ReportUnreached(emit) // reports hosts that were lost meanwhile
	return findings, err
}

// reachChecker is a Checker that fails if a host is not reached. A run continues without such a host.
type reachChecker struct {
	supervisor.Checker
	probed *hosts.Found
}

// Check implements supervisor.Checker.
func (r reachChecker) Check(ctx context.Context, spec job.Spec, emit func(job.Event)) ([]job.Finding, error) {
	if err := r.probed.Wait(ctx); err != nil {
		return nil, err
	}
	r.probed.SkipNotes()
	findings, err := r.Checker.Check(ctx, spec, emit)
	return append(findings, r.probed.Faults()...), err
}
