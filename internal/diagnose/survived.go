package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// How many lines show that the program went on after a sign of failure: lines with a growing count (goneOn); such lines
// in a log of several ranks, which other ranks may have printed (othersGoOn); lines before an epilogue (ordinaryRun).
const (
	goneOn      = 3
	othersGoOn  = 40
	ordinaryRun = 3
	plainRun    = 8 // ordinary lines after a plain line, in a log that does not say that the job failed
	nearby      = 3 // lines between a sign and the words that say how the program goes on
)

// log returns the text of the stream with the marks of its lines. It finds the marks on the first call.
func (s *stream) log() *outlook.Log {
	if s.known.marked == nil {
		aside := make([]bool, len(s.text))
		for _, g := range s.Signs {
			for i := g.From; i < g.To; i++ {
				aside[i] = true
			}
		}
		s.known.marked = outlook.NewLog(s.text, aside, s.reader)
		s.known.marked.Number = func(i int) int { return s.lines[i].Line }
	}
	return s.known.marked
}

// marks returns the mark of each line.
func (s *stream) marks() []outlook.Mark { return s.log().Marks }

// survived reports whether the program that printed a sign of failure went on with its work. It judges by what follows
// in the same log.
func (s *stream) survived(g *sign.Sign) bool {
	marks := s.marks()
	buffered, caught := s.buffered(g), g.Caught(s.text)
	ended, last := s.reportedEnd(), s.log().LastWord()
	terminal := s.terminal(g, caught)
	if known, on := s.told(g, terminal); known {
		return on
	}
	banner := g.Banner(s.text)
	fatal := g.Class == rule.Message && outlook.Fatal(s.text[g.From])
	concludes := !fatal && last >= g.To && s.log().Concludes(last) && last > ended && !g.Rule.Is(rule.Verdict)
	if concludes && !terminal || (caught || g.OfChild(s.text)) && outlook.InEnd(g.Where) && !s.log().Failed() {
		return true
	}
	bad := false
	advanced, between, said, recovered := 0, 0, 0, (g.Plain || g.Class == rule.Message) && outlook.Recovers(s.text[g.At])
	recovered = recovered || !g.Native && g.Rule.Category != job.Assertion && !(&suspect{rule: g.Rule}).crashed() && g.From > 0 && marks[g.From-1]&outlook.Recovery != 0 && outlook.Troubled(s.text[g.From-1])
	for i := g.To; i < len(s.text); i++ {
		m := marks[i]
		if m&outlook.Aside != 0 {
			continue
		}
		said++
		if said <= nearby && !g.Rule.Is(rule.Verdict) && m&outlook.Bad == 0 && outlook.Wanted(s.text[i]) {
			return true
		}
		switch {
		case m&outlook.Done != 0, m&outlook.All != 0 && !fatal:
			enough := !terminal || recovered || between >= ordinaryRun || advanced > 0 || m&outlook.Zero != 0 || said <= nearby && outlook.Recovers(s.text[i])
			if enough && (!s.mixed || i > ended) {
				return true
			}
			between++
			continue
		case m&outlook.Bad != 0: // from here on, only the end of the work shows that the failure was survived
			bad = true
			continue
		case bad:
			recovered = recovered || m&outlook.Recovery != 0 && !s.mixed && outlook.Restarts(s.text[i])
			continue
		case m&outlook.Epilogue != 0:
			if recovered || s.outlasts(g, terminal || banner, between, advanced) {
				return true
			}
			continue
		case m&outlook.Recovery != 0 && said <= nearby && !((terminal || !s.log().Advances(i, len(marks))) && outlook.Waits(s.text[i])):
			recovered = true
			continue
		}
		if s.Plain[i+1] > s.Plain[i] {
			between++
		}
		if recovered && m&(outlook.Error|outlook.Long) == 0 && (!g.Rule.Is(rule.Verdict) || m&outlook.Advance != 0) {
			return true
		}
		slight := g.Plain && !banner && (g.Weak || g.Rule.Is(rule.Cascade|rule.Generic)) && !g.Rule.Is(rule.Verdict)
		if (caught && between > 0 && (s.again(g) || between >= plainRun && !buffered) || slight && between >= plainRun) && !s.log().Failed() {
			return true
		}
		works := m&(outlook.Error|outlook.Bad|outlook.Long) == 0 && s.log().Usual(g.From, i)
		if (works || m&outlook.Advance != 0 && (buffered || s.log().Familiar(g.From, i))) && ended < 0 && !banner {
			if advanced++; advanced >= goneOn && !s.mixed && !buffered || advanced >= othersGoOn {
				return true
			}
		}
	}
	if concludes && (recovered || between >= ordinaryRun || advanced > 0) {
		return true
	}
	if bad {
		return false
	}
	if recovered && (g.Plain || caught) && said > 0 && (ended < 0 || g.Weak && outlook.Recovers(g.Title)) && !g.Rule.Is(rule.Verdict) {
		return true
	}
	return s.othersGoOn(g, terminal, caught, between > 0)
}

// outlasts reports whether an epilogue shows that the program went on after a sign. between is how many ordinary lines,
// and advanced how many lines that count work, come between the sign and the epilogue.
func (s *stream) outlasts(g *sign.Sign, terminal bool, between, advanced int) bool {
	if g.Rule.Is(rule.Verdict) || g.Rule.Category == job.MPIError || g.Plain && terminal && !s.mixed && between < plainRun {
		return !s.mixed && advanced > 0
	}
	return !s.mixed && (between >= plainRun || !terminal && between >= ordinaryRun || advanced > 0) || g.Plain && (g.Weak || g.Rule.Is(rule.Generic))
}

// told reports whether particular lines show what the program did after a sign. known is true if they do, and on is
// true if the program went on.
func (s *stream) told(g *sign.Sign, terminal bool) (known, on bool) {
	fatal := g.Rule.Category == job.MPIError && !s.log().ZeroAfter(g.To) && !s.succeeded(g) && slices.ContainsFunc(s.text[g.From:min(len(s.text), g.To+nearby)], outlook.AbortsMPI)
	if fatal || terminal && g.Native && s.rank < 0 && s.log().Unfinished() {
		return true, false // what follows is output that the program had kept in a buffer
	}
	if s.rank < 0 && !g.Rule.Is(rule.Verdict) && g.Report == nil && s.reportedEnd() < g.To && !s.log().Failed() && s.closing() > s.lines[g.At].Line {
		return true, true
	}
	if terminal && s.rank < 0 && !g.Plain && s.known.silent <= g.From && s.ranksOf() != nil && !s.log().ZeroAfter(g.To) && s.where(g).Quiet() >= 0 {
		return true, false
	}
	if g.Plain && (outlook.Ignored(g.Title) || outlook.Back(g.Text, s.text[g.To:])) || strings.HasSuffix(g.Where, "in __del__") || message.FromR(g.Title) && strings.Contains(g.Title, " : ") && outlook.OnInR(s.text[g.To:]) && s.reportedEnd() < 0 {
		return true, true
	}
	if strings.HasPrefix(strings.TrimPrefix(s.text[g.From], `[1] "`), "Error") && slices.ContainsFunc(s.text[g.To:], func(t string) bool { return strings.HasPrefix(t, "> ") }) {
		return true, true // R echoes further statements
	}
	if s.said(g) || s.succeeded(g) || (g.Plain || g.Report != nil) && !g.Rule.Is(rule.Verdict) && outlook.Wanted(g.Title) {
		return true, true
	}
	if !s.buffered(g) && s.lanesGoOn(g) {
		return true, true
	}
	if at := g.Above(s.text); g.Caught(s.text) && s.marks()[at]&outlook.Recovery != 0 && outlook.Troubled(s.text[at]) {
		if level, _ := message.Record(s.text[at]); level == message.Error { // it says what the program does instead
			return true, true
		}
	}
	if s.halted(g) || (g.Report != nil || g.Rule.Is(rule.Verdict)) && s.resumed(g) {
		return true, !s.halted(g)
	}
	return false, false
}

// succeeded reports whether a line after a sign says that the whole run has succeeded. The line may be in this stream
// or in another one of the same log.
func (s *stream) succeeded(g *sign.Sign) bool {
	number := s.lines[g.At].Line
	return s.log().Succeeded(g.To) || slices.ContainsFunc(s.beside, func(o *stream) bool { return o.log().SucceededAfter(number) })
}

// othersGoOn reports whether other streams show that the program or the job went on after a sign. worked is true if
// ordinary lines follow the sign.
func (s *stream) othersGoOn(g *sign.Sign, terminal, caught, worked bool) bool {
	if slices.ContainsFunc(s.partners, func(p *stream) bool { return p.goesOnBeside(s.lines[g.At]) }) {
		return true
	}
	return s.common != nil && s.common.log().DoneAfter(s.lines[g.At].Line, terminal) || (g.Plain || caught) && !g.Rule.Is(rule.Verdict) && s.othersEndDone(s.lines[g.At]) ||
		(worked || g.Plain && outlook.Logged(s.text[g.At])) && slices.ContainsFunc(s.partners, func(p *stream) bool { return p.log().EndsDone() })
}

// halted reports whether the line after an error message says that its program ends, in a log that says that a program
// failed. What follows is the output of another program.
func (s *stream) halted(g *sign.Sign) bool {
	return g.To < len(s.text) && s.text[g.To] == "Execution halted" && s.log().Failed()
}

// resumed reports whether the ranks went on with their work after a report of the batch system or a launcher, and said
// in the end that the work is done. In that case, the job was started again.
func (s *stream) resumed(g *sign.Sign) bool {
	if !slices.ContainsFunc(s.beside, (*stream).endsDone) {
		return false
	}
	number := s.lines[g.At].Line
	return slices.ContainsFunc(s.beside, func(o *stream) bool {
		return o.log().UsualAfter(number) > 2*goneOn
	})
}

// endsDone reports whether the last words of the log, or of its lines that name no rank, say that the work is done.
func (s *stream) endsDone() bool {
	return s.log().EndsDone() || s.common != nil && s.common.log().EndsDone()
}

// said reports whether an exception repeats an earlier line after which the program went on in another way. The
// exception can come later because its output is buffered separately.
func (s *stream) said(g *sign.Sign) bool {
	if g.Plain || g.Report != nil || g.Class == rule.Message || len(g.Title) < 20 {
		return false
	}
	_, words, ok := strings.Cut(g.Title, ": ")
	if !ok || len(words) < 12 {
		return false
	}
	for i := 0; i < g.From; i++ {
		if !strings.Contains(s.text[i], words) {
			continue
		}
		for _, o := range append(s.partners[:len(s.partners):len(s.partners)], s) {
			if o.lines[0].File == s.lines[i].File && o.log().RecoversAfter(s.lines[i].Line, nearby) && slices.ContainsFunc(s.beside, func(o *stream) bool { return o.log().EndsDone() }) {
				return true
			}
		}
	}
	return false
}

// terminal reports whether a sign is the end of its program: an uncaught exception, the report of an end, or a crash.
// The few lines after it may come from the script that started the program.
func (s *stream) terminal(g *sign.Sign, caught bool) bool {
	switch {
	case g.Plain && message.FromR(g.Title) && !slices.Contains(s.text[g.To:], "Execution halted"): // R goes on
		return false
	case g.Weak || g.Rule.Is(rule.Weak|rule.Cascade) && g.Report == nil || caught || s.repeats(g):
		return false
	case g.Class == rule.Message:
		return outlook.Fatal(s.text[g.From])
	case !g.Plain:
		return true
	}
	return !g.Rule.Is(rule.Generic) && (!g.Rule.Is(rule.Verdict) || g.Rule.Category != job.LaunchError)
}

// repeats reports whether the log of one program has several exceptions of one kind. The program went on after the
// first.
func (s *stream) repeats(g *sign.Sign) bool {
	return !s.mixed && !g.Plain && slices.ContainsFunc(s.Signs, func(o *sign.Sign) bool {
		return o != g && !o.Plain && o.Report == nil && g.Report == nil && o.Rule == g.Rule
	})
}

// headline reports whether an error message announces an exception that follows it, and the program survived the
// exception or raised it while it shut down.
func (s *stream) headline(message *sign.Sign, ended int) bool {
	return slices.ContainsFunc(s.Signs, func(g *sign.Sign) bool {
		return !g.Plain && g.Above(s.text) == message.To-1 && g.Report == nil && (s.survived(g) || s.afterwards(g, ended))
	})
}

// again reports whether the program has caught and logged a similar exception more than once, so that it went on.
func (s *stream) again(g *sign.Sign) bool {
	return slices.ContainsFunc(s.Signs, func(o *sign.Sign) bool {
		return o != g && o.Rule.Signature == g.Rule.Signature && logtext.Alike(o.Title, g.Title) && o.Caught(s.text)
	})
}

// othersEndDone reports whether another rank printed the last words of a log of several ranks, these words say that the
// work is done, and no line after the given line says that a rank failed. It returns false if several ranks say that
// they are done: the rank of the line is then missing among them.
func (s *stream) othersEndDone(line job.Line) bool {
	var last *stream
	end, done := line.Line, 0
	for _, o := range s.beside {
		if o.rank >= 0 && o.log().EndsDone() {
			done++
		}
		marks := o.marks()
		for i, m := range slices.Backward(marks) {
			if o.lines[i].Line <= line.Line {
				break
			}
			if m&outlook.Bad != 0 {
				return false
			}
			if o != s && m&(outlook.Aside|outlook.Epilogue) == 0 && o.lines[i].Line > end {
				last, end = o, o.lines[i].Line
			}
		}
		if e := o.reportedEnd(); e >= 0 && o.lines[e].Line > line.Line {
			return false
		}
	}
	return last != nil && done <= 1 && last.log().EndsDone()
}

// buffered reports whether the text after a sign may have been printed before it.
func (s *stream) buffered(g *sign.Sign) bool { return s.log().Buffered(g.From) }

// goesOnBeside reports whether the stream, another output of the rank, shows in the log of line that much work follows
// the line and that the work is done in the end.
func (s *stream) goesOnBeside(line job.Line) bool {
	advanced := 0
	for i, m := range s.marks() {
		if s.lines[i].File == line.File && s.lines[i].Line > line.Line && m&outlook.Advance != 0 {
			advanced++
		}
	}
	return advanced >= ordinaryRun && s.log().EndsDone()
}

// reportedEnd returns the decisive line of the last report that a rank failed, or -1.
func (s *stream) reportedEnd() int {
	for _, g := range slices.Backward(s.Signs) {
		if g.Report != nil || g.Rule.Is(rule.Mute) {
			return g.At
		}
	}
	return -1
}

// done reports whether one of the logs says that the work is done.
func done(members []*member) bool {
	return slices.ContainsFunc(members, func(m *member) bool {
		return slices.ContainsFunc(m.streams, func(s *stream) bool {
			if s.whole != nil && s.whole().Concluded() {
				return true
			}
			last := s.log().LastWord()
			return s.log().Ended() >= 0 || last >= 0 && s.log().Concludes(last) || s.log().Closes()
		})
	})
}

// toldToEnd reports whether a sign only says that a worker was asked to end after all of a number of things were done,
// with no error in between.
func (s *stream) toldToEnd(g *sign.Sign) bool {
	if !g.Rule.Is(rule.Cascade) || !outlook.Sigterm(g.Title) {
		return false
	}
	return s.log().AllBefore(g.From)
}

// afterwards reports whether a sign is one that programs print while they shut down, after their work is done.
func (s *stream) afterwards(g *sign.Sign, ended int) bool {
	if outlook.Tallies(g.Title) {
		return s.log().DoneJustBefore(g.From)
	}
	late := !g.Rule.Is(rule.Verdict) && (g.Rule.Is(rule.Cascade) || g.Weak || outlook.InEnd(g.Title) || outlook.InEnd(g.Where) ||
		g.Rule.Category == job.CollectiveTimeout || g.Rule.Category == job.NetworkError || g.Rule.Category == job.Hang)
	if ended < 0 || g.From < ended {
		return late && ((outlook.Warns(g.Title) || outlook.InEnd(g.Title) || outlook.InEnd(g.Where)) && s.reportedEnd() < 0 && !s.log().Failed() && s.log().DoneJustBefore(g.From) || s.common != nil && s.common.log().DoneBefore(s.lines[g.From].Line))
	}
	return late || s.marks()[ended-1]&outlook.Zero != 0 && s.Plain[g.From]-s.Plain[ended] < ordinaryRun
}
