package htmlreport

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/supervisor/runreport"
)

// mostAttempts is the maximum number of attempts that the page describes in detail. In a longer run, these are
// the last ones. mostLong limits the length of each list about an attempt. mostEvidence limits the number of
// lines that show the cause, and the number of lines after them.
const (
	mostAttempts = 20
	mostLong     = 40
	mostEvidence = 20
)

// attempts are the attempts of a run.
type attempts struct {
	All  []attempt // the newest first
	Left int       // number of attempts that are left out
}

// attempt has what the page shows about an attempt.
type attempt struct {
	Title, Tone string
	Open        bool
	Facts       []fact
	Why         []string // sentences about the placement
	Cause       *cause
	Hang        *hang
	Signs       []sign
}

// cause describes why an attempt failed.
type cause struct {
	Category, Where, Text, Hint string
	Confidence                  float64 // percent
	Lines                       []evidence
}

// evidence is a line of a log.
type evidence struct {
	Where, Text string
	Class       string // "decisive" for the line that shows the cause, "after" for the lines after it
}

// hang describes where the ranks of a gang that hung were.
type hang struct {
	Text, Why string
	Groups    []group
}

type group struct {
	Who, Where, State string
	Frames            []string
}

// sign is a sign of ill health, or of slowness.
type sign struct{ Time, Where, Text, Hint string }

func attemptsOf(r runreport.Report) (out attempts) {
	for i := len(r.Attempts) - 1; i >= 0; i-- {
		if len(out.All) == mostAttempts {
			out.Left = i + 1
			break
		}
		out.All = append(out.All, attemptOf(r.Attempts[i], i == len(r.Attempts)-1))
	}
	return out
}

func attemptOf(a runreport.Attempt, newest bool) attempt {
	out := attempt{Title: fmt.Sprintf("Attempt %d %s", a.Number, attemptWord(a)), Tone: attemptTone(a), Open: newest}
	add := func(name, text string) {
		if text != "" {
			out.Facts = append(out.Facts, fact{name, clip(text)})
		}
	}
	if a.Started != nil {
		when := moment(*a.Started)
		if a.Ended != nil {
			when += ", " + span(a.Ended.Sub(*a.Started))
		}
		add("started", when)
	}
	add("resumed from", a.ResumeFrom)
	if a.Step >= 0 {
		add("reached", strings.TrimSuffix(fmt.Sprintf("step %d, loss %s", a.Step, lossText(a.Loss, a.LossIs)), ", loss "))
	}
	add("ranks", exitCounts(a))
	if a.Saved != nil {
		add("saved", a.Saved.Path)
	}
	add("checkpoints", a.Saves.Line())
	if i := a.Saves.Interval; i != nil && !saves.Near(*i) {
		add("interval", saves.Words(*i))
	}
	for _, v := range a.Curves[:min(len(a.Curves), mostLong)] {
		add("curve", runreport.CurveText(v))
	}
	if v := a.Verdict; v != nil && !a.Good() {
		add("verdict", fmt.Sprintf("%s: %s", v.Action, v.Reason))
	}
	for _, why := range a.Why[:min(len(a.Why), mostLong)] {
		out.Why = append(out.Why, clip(why))
	}
	add("logs", a.Logs)
	if a.Cause != nil && !a.Good() {
		out.Cause = causeOf(*a.Cause)
	}
	if a.Hang != nil {
		out.Hang = hangOf(*a.Hang)
	}
	out.Signs = signsOf(a)
	return out
}

// exitCounts says how many ranks ended in each way.
func exitCounts(a runreport.Attempt) string {
	good, stopped, bad := 0, 0, 0
	for _, x := range a.Exits {
		switch {
		case x.Stopped:
			stopped++
		case x.Good():
			good++
		default:
			bad++
		}
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{bad, "failed"}, {good, "ended well"}, {stopped, "ended by gangrun"}, {len(a.Unreaped), "may still run"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

func causeOf(c job.Cause) *cause {
	out := &cause{Category: string(cmp.Or(c.Category, job.Unknown)), Text: clip(c.Text), Hint: clip(c.Hint), Confidence: 100 * c.Confidence}
	if c.Signature != "" && c.Signature != out.Category {
		out.Category += " (" + c.Signature + ")"
	}
	switch {
	case c.Rank >= 0 && c.Host != "":
		out.Where = fmt.Sprintf("rank %d on %s", c.Rank, c.Host)
	case c.Rank >= 0:
		out.Where = fmt.Sprintf("rank %d", c.Rank)
	default:
		out.Where = c.Host
	}
	shown := c.Evidence[max(0, len(c.Evidence)-mostEvidence):]
	for i, l := range shown {
		class := ""
		if i == len(shown)-1 {
			class = "decisive"
		}
		out.Lines = append(out.Lines, evidence{lineWhere(l), clip(l.Text), class})
	}
	for _, l := range c.After[:min(len(c.After), mostEvidence)] {
		out.Lines = append(out.Lines, evidence{lineWhere(l), clip(l.Text), "after"})
	}
	return out
}

// lineWhere says where a line was read. It omits the directories of the file, which the page shows elsewhere.
func lineWhere(l job.Line) string {
	if l.File == "" {
		return strings.TrimSpace(l.Host + " " + string(l.Source))
	}
	where := text.Clip(l.File[strings.LastIndexByte(l.File, '/')+1:], 80)
	if l.Line > 0 {
		where += fmt.Sprintf(":%d", l.Line)
	}
	return where
}

func hangOf(h job.HangReport) *hang {
	out := &hang{Text: clip(h.Text), Why: clip(h.Why)}
	if len(h.Ranks) > 0 && h.Why != "" {
		out.Why = rankText(h.Ranks) + ": " + out.Why
	}
	for _, g := range h.Groups[:min(len(h.Groups), mostLong)] {
		shown := group{Who: rankText(g.Ranks), Where: clip(cmp.Or(g.Where, "a place that is not known")), State: string(g.State)}
		for _, f := range g.Frames[:min(len(g.Frames), mostLong)] {
			shown.Frames = append(shown.Frames, frame(f))
		}
		out.Groups = append(out.Groups, shown)
	}
	return out
}

func frame(f job.Frame) string {
	out := f.Function
	if f.File != "" {
		out += " " + f.File
		if f.Line > 0 {
			out += fmt.Sprintf(":%d", f.Line)
		}
	}
	return text.Clip(out, 200)
}

// signsOf returns the signs of ill health and of slowness in an attempt.
func signsOf(a runreport.Attempt) (out []sign) {
	for _, s := range a.Signs[:min(len(a.Signs), mostLong)] {
		out = append(out, sign{moment(s.Time), s.Host, clip(s.Text), clip(s.Hint)})
	}
	for _, s := range a.Stragglers[:min(len(a.Stragglers), mostLong)] {
		out = append(out, sign{"", s.Host, clip(s.Text), ""})
	}
	return out
}
