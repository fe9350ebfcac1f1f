package runreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/text"
)

// maxShown is the maximum number of ranks or findings that a summary names one by one.
const maxShown = 8

// maxWidth is the maximum number of characters of a quoted line.
const maxWidth = 160

// Summary returns a report as lines for people: what happened to the run, attempt by
// attempt, and what to do next. No line has control characters.
func Summary(r Report) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", label, text.Printable(fmt.Sprintf(format, args...)))
	}
	summarizeRun(line, r)
	summarizePreflight(line, r)
	summarizeTrial(line, r)
	for _, a := range r.Attempts {
		summarizeAttempt(line, a)
	}
	summarizeEnd(line, r)
	w.Flush()
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// liner is a function that adds a line with a label.
type liner func(label, format string, args ...any)

func summarizeRun(line liner, r Report) {
	what := r.Run + " " + string(r.State)
	if r.Started != nil && r.Ended != nil {
		what += " after " + short(r.Ended.Sub(*r.Started))
	}
	if r.Reason != "" {
		what += ": " + r.Reason
	}
	line("run", "%s", what)
	if r.Name != "" {
		line("name", "%s", r.Name)
	}
	if r.Batch != nil {
		line("job", "%s in %s", r.Batch, r.Batch.System)
	}
	if len(r.Command) > 0 {
		line("command", "%s", text.Clip(strings.Join(r.Command, " "), maxWidth))
	}
}

func summarizePreflight(line liner, r Report) {
	shown := 0
	for _, f := range r.Preflight {
		if f.Severity == job.SeverityNote {
			continue
		}
		if shown++; shown > maxShown {
			continue
		}
		where := ""
		if f.Host != "" {
			where = " on " + f.Host
		}
		text := f.Text
		if f.Cause != nil && f.Cause.Category != "" {
			text = string(f.Cause.Category) + ": " + text
		}
		line("preflight", "%s: %s%s: %s", f.Severity, f.Check, where, text)
		if f.Hint != "" {
			line("", "hint: %s", f.Hint)
		}
	}
	if shown > maxShown {
		line("", "and %d more", shown-maxShown)
	}
}

func summarizeAttempt(line liner, a Attempt) {
	line(fmt.Sprintf("attempt %d", a.Number), "%s", attemptTimes(a))
	if a.ResumeFrom != "" {
		line("  resumed", "from %s", a.ResumeFrom)
	}
	if words := progress(a.Step, a.Total, a.Loss, a.LossIs); len(words) > 0 {
		line("  reached", "%s", strings.Join(words, ", "))
	}
	label := "  ranks"
	for _, text := range exits(a) {
		line(label, "%s", text)
		label = ""
	}
	summarizeSaves(line, a)
	summarizeLife(line, a)
	if c := a.Cause; c != nil {
		line("  cause", "%s", causeText(*c))
		if n := len(c.Evidence); n > 0 {
			line("", "%s", quote(c.Evidence[n-1]))
		}
		if c.Hint != "" {
			line("", "hint: %s", c.Hint)
		}
	}
	if a.Saved != nil {
		line("  saved", "%s", a.Saved.Path)
	}
	if a.Verdict != nil && !a.Good() {
		line("  verdict", "%s: %s", a.Verdict.Action, a.Verdict.Reason)
	}
	if a.Logs != "" {
		line("  logs", "%s", a.Logs)
	}
}

// CurveText says what a curve shows, how sure gangrun is of that, and how much GPU time an end of the run would
// save.
func CurveText(v job.CurveVerdict) string {
	said := fmt.Sprintf("%s, confidence %.0f %%: %s", v.Kind, 100*v.Confidence, v.Text)
	switch {
	case v.Saves == nil || *v.Saves < 0.005:
	case v.Kind == "slower":
		said += fmt.Sprintf("; until the planned end, that costs about %.2f GPU-hours", *v.Saves)
	default:
		said += fmt.Sprintf("; the planned end is about %.2f GPU-hours away", *v.Saves)
	}
	return said
}

// summarizeSaves adds lines about which checkpoints were written, what was wrong with them, and how often the
// job should save.
func summarizeSaves(line liner, a Attempt) {
	if words := a.Saves.Line(); words != "" {
		line("  checkpoints", "%s", words)
	}
	shown := 0
	for _, r := range a.Saves.Newest {
		if r.Problem() && shown < maxShown {
			line("", "%s", saves.Text(r))
			shown++
		}
	}
	if i := a.Saves.Interval; i != nil && !saves.Near(*i) {
		line("", "%s", saves.Words(*i))
	}
}

// summarizeLife adds lines about the verdicts on the curves, the stragglers and, if the gang hung, the stacks
// of its ranks.
func summarizeLife(line liner, a Attempt) {
	for i, v := range a.Curves {
		if i == maxShown {
			line("", "and %d more", len(a.Curves)-i)
			break
		}
		line("  curve", "%s", CurveText(v))
	}
	for i, s := range a.Stragglers {
		if i == maxShown {
			line("", "and %d more", len(a.Stragglers)-i)
			break
		}
		line("  slow", "%s", s.Text)
	}
	if a.Hang == nil {
		return
	}
	if a.Cause == nil || a.Cause.Text != a.Hang.Text {
		line("  hang", "%s", a.Hang.Text)
	}
	label := "  where"
	for i, g := range a.Hang.Groups {
		if i == maxShown {
			line("", "and %s", text.Count(len(a.Hang.Groups)-i, "more group"))
			break
		}
		line(label, "%s in %s", text.Ranks(g.Ranks), text.Clip(g.Where, maxWidth))
		label = ""
	}
}

func attemptTimes(a Attempt) string {
	switch {
	case a.Started == nil:
		return "placed, not started"
	case a.Ended == nil:
		return fmt.Sprintf("started %s, not ended", clock(*a.Started))
	}
	how := "failed"
	switch {
	case a.Good():
		how = "succeeded"
	case a.Cause == nil:
		how = "ended"
	case a.Cause.Category == job.Cancelled, a.Cause.Category == job.TimeLimit, a.Cause.Category == job.StoppedEarly:
		how = "was ended"
	}
	return fmt.Sprintf("started %s, %s %s after %s", clock(*a.Started), how, clock(*a.Ended), short(a.Ended.Sub(*a.Started)))
}

// exits returns how the ranks of an attempt ended. It lists the ranks that failed by themselves one by one, in
// the order in which gangrun saw their exits. It counts the others.
func exits(a Attempt) []string {
	var failed []string
	good, ended, lost := 0, 0, 0
	for _, x := range a.Exits {
		switch {
		case x.Stopped && x.Status == job.Lost:
			lost++
		case x.Stopped:
			ended++
		case x.Good():
			good++
		default:
			text := x.String()
			if !x.Time.IsZero() {
				text = clock(x.Time) + "  " + text
			}
			failed = append(failed, text)
		}
	}
	if more := len(failed) - maxShown; more > 0 {
		failed = append(failed[:maxShown], fmt.Sprintf("and %d more", more))
	}
	if good > 0 {
		failed = append(failed, text.Count(good, "rank")+" ended well")
	}
	if ended > 0 {
		failed = append(failed, text.Count(ended, "rank")+" ended by gangrun")
	}
	if lost > 0 {
		failed = append(failed, text.Count(lost, "rank")+" lost")
	}
	if n := len(a.Unreaped); n > 0 {
		hosts := map[string]bool{}
		var names []string
		for _, u := range a.Unreaped {
			if !hosts[u.Host] {
				hosts[u.Host] = true
				names = append(names, u.Host)
			}
		}
		slices.Sort(names)
		failed = append(failed, fmt.Sprintf("%s may still be running on %s", text.Count(n, "rank"), strings.Join(names, ", ")))
	}
	return failed
}

func causeText(c job.Cause) string {
	what := string(cmp.Or(c.Category, job.Unknown))
	if c.Signature != "" && c.Signature != what {
		what += " (" + c.Signature + ")"
	}
	where := c.Host
	switch {
	case c.Rank >= 0 && c.Host != "":
		where = fmt.Sprintf("rank %d on %s", c.Rank, c.Host)
	case c.Rank >= 0:
		where = fmt.Sprintf("rank %d", c.Rank)
	}
	if where != "" && !strings.HasPrefix(c.Text, where) {
		what += ", " + where
	}
	if c.Text != "" {
		what += ": " + c.Text
	}
	return what
}

func quote(l job.Line) string {
	where := string(l.Source)
	if l.File != "" {
		where = l.File
		if l.Line > 0 {
			where += fmt.Sprintf(":%d", l.Line)
		}
	}
	return where + ": " + text.Clip(strings.TrimSpace(l.Text), maxWidth)
}

func summarizeEnd(line liner, r Report) {
	s := r.Seconds
	var phases []string
	for _, p := range []struct {
		name    string
		seconds float64
	}{{"preflight", s.Preflight}, {"waiting", s.Waiting}, {"launching", s.Launching}, {"running", s.Running}, {"back-off", s.Backoff}} {
		if p.seconds > 0 {
			phases = append(phases, p.name+" "+short(time.Duration(p.seconds*float64(time.Second))))
		}
	}
	if len(phases) > 0 {
		line("time", "%s", strings.Join(phases, ", "))
	}
	if g := r.GPUSeconds; g.Used > 0 {
		line("GPU time", "%.0f GPU-seconds, %.0f of them wasted", g.Used, g.Wasted)
	}
	for _, note := range r.Notes {
		line("note", "%s", note)
	}
	if r.Hint != "" && job.FirstError(r.Preflight) == nil { // otherwise the finding has the hint
		line("hint", "%s", r.Hint)
	}
	if r.ExitCode != nil {
		line("exit code", "%d (%s)", *r.ExitCode, r.ExitWhy)
	}
}

// clock formats a time of day with tenths of a second.
func clock(t time.Time) string { return t.Format("15:04:05.0") }
