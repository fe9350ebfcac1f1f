package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/supervisor"
)

// show is what the user sees while a run goes on: a fold over its events.
type show struct {
	spec   job.Spec
	run    home.Run
	terse  bool // nothing is said but why the run has failed
	ending bool // this process takes the run over to end it
	screen *screen.Screen

	mu     sync.Mutex
	folder supervisor.Folder
	asking bool // somebody is asked for what is not shown
}

func newShow(spec job.Spec, run home.Run, terse bool, s *screen.Screen) *show {
	return &show{spec: spec, run: run, terse: terse, screen: s}
}

// output shows what a rank printed. Its errors are the screen's: a terminal
// that has gone away ends no gang.
func (s *show) output(o job.Output) {
	if o.End {
		_ = s.screen.EndOfStream(o.Rank, o.Stderr)
		return
	}
	_ = s.screen.Output(o.Rank, o.Host, o.Stderr, o.Data)
}

// event takes the next event in. What is worth a line is queued, not written:
// a stopped terminal must not hold up the run.
func (s *show) event(e job.Event, say func(string)) {
	s.mu.Lock()
	s.folder.Add(e)
	s.mu.Unlock()
	for _, line := range s.lines(e) {
		say(line)
	}
}

// lines is what an event is worth on the screen.
func (s *show) lines(e job.Event) []string {
	if s.terse && !missing(e) {
		return nil
	}
	switch e.Kind {
	case job.KindCreated:
		return []string{fmt.Sprintf("run %s, logs in %s", s.run.ID, s.run.Dir)}
	case job.KindAttached:
		if c := e.Controller; c != nil && *c != home.Self() {
			return []string{fmt.Sprintf("note: process %d on %s has taken over the run", c.PID, c.Host)}
		}
		if s.ending {
			return []string{fmt.Sprintf("the controller of run %s is gone: this process ends the run; logs in %s", s.run.ID, s.run.Dir)}
		}
		return []string{fmt.Sprintf("run %s goes on under this process, Ctrl-C ends it; logs in %s", s.run.ID, s.run.Dir)}
	case job.KindTrial:
		return []string{"trial: " + e.Text}
	case job.KindNote, job.KindHeard:
		return []string{"note: " + e.Text}
	case job.KindSuspect:
		return []string{"warning: " + e.Text}
	case job.KindFinding:
		if f := e.Finding; f.Severity == job.SeverityWarning {
			return withHint(fmt.Sprintf("warning: %s%s", on(f.Host), f.Text), f.Hint)
		}
	case job.KindGPU:
		if g := e.GPU; g != nil && (g.Sign == job.GPUECCSingle || g.Sign == job.GPUUnwatched || g.Sign == job.GPUShared) {
			return []string{"note: " + on(e.Host) + e.Text}
		}
		return withHint("warning: "+on(e.Host)+e.Text, e.Hint)
	case job.KindPlaced:
		if e.Attempt == 1 && e.Explanation != nil && len(e.Explanation.Why) > 0 {
			if last := e.Explanation.Why[len(e.Explanation.Why)-1]; strings.Contains(last, " share ") {
				return []string{"note: " + last}
			}
		}
	case job.KindWireup:
		if missing(e) {
			return []string{"note: " + e.Text}
		}
	case job.KindAttempt:
		switch {
		case e.ResumeFrom != "":
			return []string{fmt.Sprintf("attempt %d resumes from %s", e.Attempt, e.ResumeFrom)}
		case e.Attempt > 1 && s.spec.CheckpointDir == "":
			return []string{fmt.Sprintf("attempt %d starts; gangrun has no checkpoint to give it (no --checkpoint-dir)", e.Attempt)}
		case e.Attempt > 1:
			return []string{fmt.Sprintf("attempt %d starts from the beginning", e.Attempt)}
		}
	case job.KindStop:
		if e.Attempt > 0 {
			return []string{"ending the gang: " + e.Text}
		}
	case job.KindVerdict:
		if v := e.Verdict; v.Action == job.Restart {
			return []string{fmt.Sprintf("attempt %d failed: %s", e.Attempt, s.cause()), "verdict: " + v.Reason}
		}
	}
	return nil
}

// missing reports whether an event tells of a gang whose ranks have not all
// found each other.
func missing(e job.Event) bool {
	if e.Kind != job.KindWireup || e.Attempt == 0 {
		return false
	}
	up := e.Wireup
	return up.Library != "" && up.MPI == job.MPINone || up.Library == "" && len(up.Silent) > 0
}

func (s *show) cause() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.folder.Report().Cause(); c != nil {
		return fmt.Sprintf("%s: %s", c.Category, c.Text)
	}
	return "no cause was found"
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return "on " + host + ": "
}

func withHint(text, hint string) []string {
	if hint == "" {
		return []string{text}
	}
	return []string{text, "hint: " + hint}
}

// teller writes lines to the screen in order, from a goroutine of its own, so
// that who tells never waits for a terminal.
type teller struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	more   *sync.Cond
	lines  []string
	closed bool
}

func newTeller(write func(string)) *teller {
	t := &teller{}
	t.more = sync.NewCond(&t.mu)
	t.wg.Go(func() {
		for {
			t.mu.Lock()
			for len(t.lines) == 0 && !t.closed {
				t.more.Wait()
			}
			lines := t.lines
			t.lines = nil
			t.mu.Unlock()
			if len(lines) == 0 {
				return
			}
			for _, line := range lines {
				write(line)
			}
		}
	})
	return t
}

func (t *teller) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.more.Signal()
}

// close waits until everything has been written, or until ctx ends: then a
// stopped terminal is soon left alone.
func (t *teller) close(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	t.more.Signal()
	t.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); t.wg.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
		select { // a terminal that takes it gets it
		case <-done:
		case <-time.After(hurriedSummary):
		}
	}
}

// flushEvery is how often unfinished lines and the status line are refreshed.
const flushEvery = 100 * time.Millisecond

// ask shows what somebody is asked who types the answer unseen; "" ends that. The
// cursor stays where it is meanwhile, as far as the status would move it.
func (s *show) ask(question string) {
	s.mu.Lock()
	s.asking = question != ""
	s.mu.Unlock()
	if question == "" {
		s.screen.Status("")
		return
	}
	s.screen.Say("%s", question)
	s.screen.Status("(nothing is shown of what you type)")
}

// refresh keeps the screen fresh until ctx ends.
func (s *show) refresh(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.mu.Lock()
			status, asking := s.folder.Status(now), s.asking
			s.mu.Unlock()
			if !status.State.Final() && !s.terse && !asking {
				s.screen.Status(s.run.ID + ": " + status.String())
			}
			_ = s.screen.Flush(now)
		case <-ctx.Done():
			return
		}
	}
}

// closing shows the summary and, last of all, what the failed rank said.
func (s *show) closing(r supervisor.Report) {
	if s.terse {
		s.lastWords(r)
		return
	}
	s.screen.Status("")
	for _, line := range summary(r) {
		s.screen.Say("%s", line)
	}
	cause := r.Cause()
	if cause == nil || r.State == job.StateSucceeded || s.spec.Output == job.OutputNone {
		return
	}
	for _, line := range slices.Concat(cause.Evidence, cause.After) {
		switch {
		case line.Source != job.SourceStdout && line.Source != job.SourceStderr && line.Source != job.SourceErrorFile:
		case line.Rank < 0: // mpirun's, or a daemon's
			s.screen.Say("%s", printable(on(line.Host)+line.Text))
		default:
			_ = s.screen.Output(line.Rank, line.Host, true, []byte(line.Text+"\n"))
		}
	}
}

// lastWords says why a run has failed, if it has.
func (s *show) lastWords(r supervisor.Report) {
	if r.State == job.StateSucceeded {
		return
	}
	text, logs := r.Reason, s.run.Dir
	if c := r.Cause(); c != nil && c.Text != "" {
		text = c.Text
	}
	if a := r.Last(); a != nil && a.Logs != "" {
		logs = a.Logs
	}
	s.screen.Error(text)
	if r.State == job.StateNoPlacement && r.Hint != "" {
		s.screen.Say("hint: %s", r.Hint)
	}
	if r.ExitCode != nil {
		s.screen.Say("exit code %d (%s), logs in %s", *r.ExitCode, r.ExitWhy, logs)
	}
}
