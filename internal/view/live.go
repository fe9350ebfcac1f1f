// Package view prints what gangrun knows about a run, during the run and afterwards.
package view

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/queue"
	"github.com/gangrun/gangrun/internal/screen"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Options says what a Live shows, and where it shows it.
type Options struct {
	Spec   job.Spec
	Run    home.Run
	Screen *screen.Screen
	Terse  bool // show only why the run has failed
	Ending bool // this process has taken over the run only to end it
}

// Live shows a run while it is running. It computes a report from the run's events. It shows the ranks' output,
// a status line, and messages for the events that matter to the user. Several goroutines may call its methods
// at the same time.
type Live struct {
	Options
	lines *queue.Queue[string] // shown by a goroutine of their own, because a terminal may be stopped

	mu     sync.Mutex
	folder runreport.Folder
	asking bool // gangrun asks a question, and the terminal does not show the answer
}

// NewLive returns a Live. The caller must call FlushLines at the end.
func NewLive(o Options) *Live {
	return &Live{Options: o, lines: queue.New(func(line string) { o.Screen.Say("%s", line) })}
}

// Say shows a message of gangrun, after the messages of earlier calls. It does not wait for the
// terminal.
func (l *Live) Say(line string) { l.lines.Put(line) }

// lastLinesLimit is how long the lines that wait may take if the user is in a hurry. The closing
// summary may then take as long again. A stopped terminal accepts neither.
const lastLinesLimit = time.Second

// FlushLines waits until all lines are shown. If ctx ends first, it waits one second longer, so that a terminal
// that accepts output still gets the last lines. Say must not be called after FlushLines.
func (l *Live) FlushLines(ctx context.Context) { waitHurried(ctx, l.lines.Close()) }

// Finish calls show, which writes to the screen, and waits until show returns. If ctx ends
// first, Finish waits one second longer, and then returns although show may still run.
func Finish(ctx context.Context, show func()) {
	finished := make(chan struct{})
	go func() { defer close(finished); show() }()
	waitHurried(ctx, finished)
}

func waitHurried(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(lastLinesLimit):
		}
	}
}

// Report returns the report of the run after the events so far.
func (l *Live) Report() runreport.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folder.Report()
}

// Output shows what a rank printed. It ignores errors of the screen, because a gang goes on when its terminal
// is gone.
func (l *Live) Output(o job.Output) {
	if o.End {
		_ = l.Screen.EndOfStream(o.Rank, o.Stderr)
		return
	}
	_ = l.Screen.Output(o.Rank, o.Host, o.Stderr, o.Data)
}

// Fold adds an event to the report, and shows nothing.
func (l *Live) Fold(e job.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folder.Add(e)
}

// Event adds an event to the report, and shows a message if the event matters to the user.
func (l *Live) Event(e job.Event) {
	if e.Kind == job.KindHealth && l.told(e) {
		l.Fold(e)
		return
	}
	l.Fold(e)
	for _, line := range l.eventLines(e) {
		l.Say(line)
	}
}

// told reports whether another host has reported the same.
func (l *Live) told(e job.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folder.Told(e)
}

// eventLines returns the lines that are shown for an event. For most events, there are none.
func (l *Live) eventLines(e job.Event) []string {
	if l.Terse && !ranksMissing(e) {
		return nil
	}
	switch e.Kind {
	case job.KindCreated:
		return []string{fmt.Sprintf("run %s, logs in %s", l.Run.ID, l.Run.Dir)}
	case job.KindAttached:
		if c := e.Controller; c != nil && *c != home.Self() {
			return []string{fmt.Sprintf("note: process %d on %s has taken over the run", c.PID, c.Host)}
		}
		if l.Ending {
			return []string{fmt.Sprintf("the controller of run %s is gone: this process ends the run; logs in %s", l.Run.ID, l.Run.Dir)}
		}
		return []string{fmt.Sprintf("run %s goes on under this process, Ctrl-C ends it; logs in %s", l.Run.ID, l.Run.Dir)}
	case job.KindTrial:
		return []string{"trial: " + e.Text}
	case job.KindNote, job.KindHeard, job.KindSignal:
		return []string{"note: " + e.Text}
	case job.KindSuspect, job.KindHang:
		return []string{"warning: " + e.Text}
	case job.KindSave:
		if s := e.Save; s != nil && s.Problem() {
			return withHint("warning: "+on(e.Host)+e.Text, e.Hint)
		}
	case job.KindStraggler:
		return withHint("warning: "+e.Text, e.Hint)
	case job.KindCurve:
		if v := e.Curve; v != nil && !v.Sure {
			return withHint("note: "+e.Text, e.Hint)
		}
		return withHint("warning: "+e.Text, e.Hint)
	case job.KindFinding:
		if f := e.Finding; f.Severity == job.SeverityWarning {
			return withHint(fmt.Sprintf("warning: %s%s", on(f.Host), f.Text), f.Hint)
		}
	case job.KindGPU:
		if g := e.GPU; g != nil && !g.Serious() {
			return []string{"note: " + on(e.Host) + e.Text}
		}
		return withHint("warning: "+on(e.Host)+e.Text, e.Hint)
	case job.KindHealth:
		if h := e.Health; h != nil && h.Severity == job.SeverityNote {
			return []string{"note: " + on(e.Host) + e.Text}
		}
		return withHint("warning: "+on(e.Host)+e.Text, e.Hint)
	case job.KindPlaced:
		if e.Attempt == 1 && e.Explanation != nil && e.Explanation.Oversubscribed != nil {
			return []string{"note: " + e.Explanation.Oversubscribed.String()}
		}
	case job.KindWireup:
		if ranksMissing(e) {
			return []string{"note: " + e.Text}
		}
	case job.KindAttempt:
		switch {
		case e.ResumeFrom != "":
			return []string{fmt.Sprintf("attempt %d resumes from %s", e.Attempt, e.ResumeFrom)}
		case e.Attempt > 1 && l.Spec.CheckpointDir == "":
			return []string{fmt.Sprintf("attempt %d starts; gangrun has no checkpoint to give it (no --checkpoint-dir)", e.Attempt)}
		case e.Attempt > 1:
			return []string{fmt.Sprintf("attempt %d starts from the beginning", e.Attempt)}
		}
	case job.KindStop:
		switch {
		case e.Attempt == 0:
		case e.Stop == job.StopOrder && e.Order != nil && e.Order.Signal != 0 && e.Order.By == "":
			return []string{"ending the gang: " + e.Text + "; a second signal ends it at once"}
		default:
			return []string{"ending the gang: " + e.Text}
		}
	case job.KindVerdict:
		if v := e.Verdict; v.Action == job.Restart {
			return []string{fmt.Sprintf("attempt %d failed: %s", e.Attempt, l.cause()), "verdict: " + v.Reason}
		}
	}
	return nil
}

// ranksMissing reports whether an event says that not all ranks of a gang have found each other.
func ranksMissing(e job.Event) bool {
	if e.Kind != job.KindWireup || e.Attempt == 0 {
		return false
	}
	up := e.Wireup
	return up.Library != "" && up.MPI == job.MPINone || up.Library == "" && len(up.Silent) > 0
}

func (l *Live) cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.folder.Report().Cause(); c != nil {
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

// flushEvery is the time between two updates of the screen by Refresh.
const flushEvery = 100 * time.Millisecond

// Ask shows a question to which the user types an answer that the terminal does not show. The status line says
// that the answer is not shown, until Ask is called with an empty question.
func (l *Live) Ask(question string) {
	l.mu.Lock()
	l.asking = question != ""
	l.mu.Unlock()
	if question == "" {
		l.Screen.Status("")
		return
	}
	l.Screen.Say("%s", question)
	l.Screen.Status("(nothing is shown of what you type)")
}

// Refresh shows unfinished lines and the status line from time to time until ctx ends.
func (l *Live) Refresh(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.mu.Lock()
			status, asking := l.folder.Status(now), l.asking
			l.mu.Unlock()
			if !status.State.Final() && !l.Terse && !asking {
				l.Screen.Status(l.Run.ID + ": " + status.String())
			}
			_ = l.Screen.Flush(now)
		case <-ctx.Done():
			return
		}
	}
}

// Closing shows the lines of a plot, the summary of a run that has ended, and at the very end what the failed rank
// printed.
func (l *Live) Closing(r runreport.Report, plot []string) {
	if l.Terse {
		l.lastWords(r)
		return
	}
	l.Screen.Status("")
	for _, line := range slices.Concat(plot, Summary(r)) {
		l.Screen.Say("%s", line)
	}
	cause := r.Cause()
	if cause == nil || r.State == job.StateSucceeded || l.Spec.Output == job.OutputNone {
		return
	}
	for _, line := range slices.Concat(cause.Evidence, cause.After) {
		switch {
		case line.Source != job.SourceStdout && line.Source != job.SourceStderr && line.Source != job.SourceErrorFile:
		case line.Rank < 0: // a line of mpirun or of a daemon
			l.Screen.Say("%s", text.Printable(on(line.Host)+line.Text))
		default:
			_ = l.Screen.Output(line.Rank, line.Host, true, []byte(line.Text+"\n"))
		}
	}
}

// lastWords shows why a run has failed. It shows nothing if the run has succeeded.
func (l *Live) lastWords(r runreport.Report) {
	if r.State == job.StateSucceeded {
		return
	}
	why, logs, hint := r.Reason, l.Run.Dir, ""
	if r.State == job.StateNoPlacement {
		hint = r.Hint
	}
	if c := r.Cause(); c != nil && c.Text != "" {
		why = c.Text
		if c.Category == job.MPIError || c.Category == job.LaunchError { // not a fault of the program itself
			hint = c.Hint
		}
	}
	if a := r.Last(); a != nil && a.Logs != "" {
		logs = a.Logs
	}
	l.Screen.Error(why)
	if hint != "" {
		l.Screen.Say("hint: %s", hint)
	}
	if r.ExitCode != nil {
		l.Screen.Say("exit code %d (%s), logs in %s", *r.ExitCode, r.ExitWhy, logs)
	}
}
