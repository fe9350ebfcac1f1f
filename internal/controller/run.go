package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/controller/inspect"
	"github.com/gangrun/gangrun/internal/controller/stop"
	"github.com/gangrun/gangrun/internal/diagnose/refusal"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/view"
	"github.com/gangrun/gangrun/preflight"
	"github.com/gangrun/gangrun/supervisor"
	"github.com/gangrun/gangrun/supervisor/exitcode"
	"github.com/gangrun/gangrun/supervisor/runreport"
	"github.com/gangrun/gangrun/supervisor/secret"
	"github.com/gangrun/gangrun/supervisor/watch/stacktree"
)

// Run runs a job to its end. The error is a failure.Exit, unless gangrun itself failed
// before the run began.
func Run(spec job.Spec, options Options) error {
	s, err := openSession(spec, options)
	if err != nil {
		return err
	}
	return s.conclude(s.toEnd(s.placer))
}

// toEnd runs the session's job until it ends. places finds the places of its gangs.
func (s *session) toEnd(places supervisor.Placer) (runreport.Report, error) {
	return s.supervise(func(p parts) (runreport.Report, error) {
		sup := &supervisor.Supervisor{
			Launcher: s.noteTakeover(s.watchCurves(s.watchGPUs(s.launcher))), Placer: places, Holder: s.placer, Looker: rechecker{s.spec, s.launcher, s.probed}, Checker: p.checker, Checkpoints: &checkpoints{resume: s.spec.Resume, seen: filepath.Join(s.run.Dir, seenName), spoilt: s.divergedBefore},
			Asker: newAsker(s.spec.BeforeStop, s.spec.StopFile(s.run.ID), s.launcher.Signal), Stacks: s.launcher.Stacks, Batch: s.batch.ended(),
			Diagnose: secret.Hiding(s.spec, s.diagnose), Refusal: refusal.Cause, Emit: p.emit, Pulse: p.pulse, Elsewhere: s.several,
		}
		info := supervisor.Run{ID: s.run.ID, Controller: home.Self(), Batch: batchJob(), User: p.user, Findings: append(jobcheck.Vain(s.spec), s.findings(s.spec)...), Legs: s.earlierLegs(), Past: s.spans, LogDir: s.run.AttemptDir}
		if s.taken == nil {
			return sup.Run(p.ctx, info, s.spec)
		}
		if !s.taken.underWay() {
			ctx := p.ctx
			if s.order != nil { // p.ctx has already ended
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(context.Background(), takeLimit)
				defer cancel()
			}
			_ = s.probed.Wait(ctx) // after that, all agents of the earlier controller are known
			s.launcher.Renew()
		}
		return sup.Resume(p.ctx, info, s.spec, s.taken.past)
	})
}

// conclude prints the report, if the user wants it on standard output. It returns the error with which this program
// exits. If there is no report, err says why.
func (s *session) conclude(report runreport.Report, err error) error {
	if err == nil && s.JSON {
		err = view.JSON(os.Stdout, struct {
			runreport.Report
			Matrix *preflight.Matrix `json:"matrix,omitempty"`
			Speeds []job.Speed       `json:"speeds,omitempty"`
		}{report, s.surveyor.matrix, s.surveyor.speeds})
	}
	if err != nil {
		return err
	}
	return Exit(report)
}

// Exit returns the error with which the program exits after a run that has the report r.
func Exit(r runreport.Report) error {
	if r.ExitCode == nil {
		return fmt.Errorf("run %s has no exit code in state %s", r.Run, r.State)
	}
	if *r.ExitCode == 0 {
		return nil
	}
	return failure.Exit(*r.ExitCode)
}

// parts has what the body of a session works with.
type parts struct {
	ctx     context.Context // ends when the user or the batch system wants the run to end
	user    context.Context // ends when the user wants the run to end
	checker supervisor.Checker
	emit    func(job.Event) error
	pulse   func(attempt int, p job.Pulses)
}

// supervise calls body, and meanwhile serves the signals, the journal and the screen of the session. When it returns,
// everything has ended and is written.
func (s *session) supervise(body func(parts) (runreport.Report, error)) (runreport.Report, error) {
	user, hurried, stopSignals := s.signals.Contexts(s.launcher.Hurry)
	ctx := s.batch.begin(user, s.spec, func(text string) { s.say("", text) })
	stopUserSignals := stop.UserSignals(s.userSignal)
	var report runreport.Report
	defer func() {
		stopUserSignals()
		s.batch.stop()
		stopSignals()
		s.signals.Dismiss(&report)
	}()
	refresh, stopRefreshing := context.WithCancel(context.Background())
	var refreshing sync.WaitGroup
	refreshing.Go(func() { s.show.Refresh(refresh) })

	checker, err := s.preflight()
	var saving sync.WaitGroup
	var plot []string
	if err == nil {
		stopListening := s.signals.Listen(s.run)
		live := inspect.StartLive(s.run)
		stopAnswering := inspect.Answerer{Run: s.run, Stacks: s.launcher.Stacks, Gang: s.gang, Group: groups}.Listen()
		report, _ = body(parts{ctx: ctx, user: user, checker: checker, pulse: live.Pulse, emit: func(e job.Event) error {
			s.show.Event(e)
			err := s.journal.Append(e)
			if e.Kind == job.KindAttached {
				err = errors.Join(err, s.control.Keep())
			}
			if s.Detached != nil && (e.Kind == job.KindCreated || e.Kind == job.KindAttached) {
				s.Detached.Announce(s.run)
			}
			return err
		}})
		stopAnswering()
		live.Stop()
		stopListening()
		saving.Go(func() {
			s.save(&report, s.show.Say)
			s.remember(report)
			if err := s.keepCurve(); err != nil {
				s.lacks("later runs of the job will not be compared with this one", err, "look at the directory of the run, "+s.run.Dir)
			}
			plot = s.page(hurried, live.Last())
		})
	}

	// The gang has ended, and its record is being written. The terminal may take longer, but not if the user is in a
	// hurry.
	_ = s.launcher.Drain(hurried)
	closeErr := s.close()
	if err != nil {
		err = errors.Join(err, s.abandon())
	}
	saving.Wait()
	if err == nil && !s.PreflightOnly {
		s.requeue(report)
	}
	stopRefreshing()
	s.show.FlushLines(hurried)
	view.Finish(hurried, func() {
		refreshing.Wait()
		_ = s.show.Screen.Close()
		if err == nil {
			s.show.Closing(report, plot)
		}
		if err := s.show.Screen.Err(); err != nil && !errors.Is(err, syscall.EPIPE) {
			s.show.Screen.Error(fmt.Sprintf("not all of the ranks' output could be shown: %v; %s has all of it", err, s.run.Dir))
		}
		if closeErr != nil {
			s.show.Screen.Error(closeErr.Error())
		}
	})
	return report, err
}

// gang returns the attempt whose gang is running, and its ranks that have not ended. If no gang is running, why is the
// reason.
func (s *session) gang() (attempt int, ranks []int, why string) {
	r := s.show.Report()
	a := r.Last()
	if a == nil || a.Started == nil || a.Ended != nil {
		return 0, nil, "it is " + string(r.State)
	}
	ended := map[int]bool{}
	for _, x := range a.Exits {
		ended[x.Rank] = true
	}
	for _, p := range a.Placement {
		if !ended[p.Rank] {
			ranks = append(ranks, p.Rank)
		}
	}
	return a.Number, ranks, ""
}

// save closes the journal and writes the report. It calls say for each error. If the records are incomplete, the run
// does not end with exit code 0.
func (s *session) save(report *runreport.Report, say func(string)) {
	lost := func(what string, err error) {
		hint := "the ranks' logs are complete, unless another message says that they are not"
		if cause, ok := refusal.Cause(err); ok {
			what, hint = string(cause.Category)+": "+what, cause.Hint
		}
		say(fmt.Sprintf("error: %s: %v", what, err))
		say("hint: " + hint)
		if report.ExitCode != nil && *report.ExitCode == exitcode.OK {
			code := exitcode.MayPass
			report.ExitCode, report.ExitWhy = &code, exitcode.WhyStorage
		}
	}
	if err := s.journal.Close(); err != nil {
		lost("the journal has gaps", err)
	}
	var data bytes.Buffer
	err := view.JSON(&data, report)
	if err == nil {
		err = atomicfile.WriteFile(s.run.ReportPath(), data.Bytes(), 0o600)
	}
	if err != nil {
		lost("the report could not be written", err)
	}
}

// groups returns the groups of ranks with equal stacks.
func groups(stacks []job.RankStack) []job.StackGroup { return stacktree.Groups(stacks) }
