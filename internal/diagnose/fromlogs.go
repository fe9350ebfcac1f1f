package diagnose

import (
	"cmp"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// fromLogs returns the suspects of a member if no rank's end is known.
func (m *member) fromLogs() []*suspect {
	var all []*suspect
	for _, st := range m.streams {
		all = append(all, m.ofLog(st)...)
	}
	for _, s := range all {
		if s.rank < 0 && s.sign.Report == nil {
			s.rank = roster.Own(s.sign.Title)
		}
		if s.rank < 0 && s.rule.Is(rule.Verdict) {
			s.rank = roster.Pod(s.sign.Title, false)
		}
	}
	return all
}

// ofLog returns the suspects of one log.
func (m *member) ofLog(st *stream) []*suspect {
	var all, past []*suspect
	ended := st.log().Ended()
	for _, g := range st.Signs {
		s := m.suspect(st, g)
		if g.Report != nil {
			s.time = time.Time{} // the launcher learned of the end later
		}
		switch {
		case g.Weak && (st.Plain[len(st.text)]-st.Plain[g.To] > weakTrail || st.leftAlike()), st.afterwards(g, ended), st.toldToEnd(g), st.outlived(g), st.scriptWentOn(g):
		case g.Plain && g.Rule.Category == job.StoppedEarly:
			if st.cutShort(g) {
				all = append(all, s)
			}
		case st.survived(g) || st.loggedBefore(g):
			past = append(past, s)
		default:
			all = append(all, s)
		}
	}
	if !slices.ContainsFunc(all, func(s *suspect) bool { return s.tier() <= tierPeer }) && (st.log().Failed() || slices.ContainsFunc(st.Signs, func(g *sign.Sign) bool { return g.Class == rule.CutOff })) {
		for _, s := range past { // one of them ended the program after all
			if s.confidence /= 2; !s.sign.Plain || s.rule.Category == job.CPUOOM || !outlook.Recovers(s.sign.Title) {
				all = append(all, s)
			}
		}
	}
	if slices.ContainsFunc(all, func(s *suspect) bool { return !s.sign.Weak && s.tier() <= tierPeer }) {
		all = slices.DeleteFunc(all, func(s *suspect) bool { return s.sign.Weak })
	}
	if g := st.Message; g != nil && !(st.leftAlike() && !message.Announces(g.Title)) && !st.headline(g, ended) && !((outlook.InEnd(g.Title) || ended > 0 && st.marks()[ended-1]&outlook.Zero != 0) && st.afterwards(g, ended)) && !outlook.Recovers(g.Title) && !st.survived(g) && !st.toldToEnd(g) && !st.outlived(g) && st.Plain[len(st.text)]-st.Plain[g.To] <= weakTrail {
		said := m.suspect(st, g)
		said.confidence -= 0.2
		if !slices.ContainsFunc(all, func(s *suspect) bool { return !said.tellsMore(s) }) {
			// Other ranks may have said the same earlier.
			if all = append(all, said); st.mixed || said.rule.Is(rule.Cascade) && st.log().Failed() {
				all = append(all, m.messages(st, false)...)
			}
			return all
		}
	}
	all = slices.DeleteFunc(all, func(s *suspect) bool { return repeated(s, all) })
	if (st.mixed || len(all) == 0 && st.log().Failed()) && !slices.ContainsFunc(all, func(s *suspect) bool { return s.tier() < tierWait }) {
		all = append(all, m.messages(st, !st.mixed)...)
	}
	// A worker that used too much memory was started again, so that its log goes on.
	if slices.ContainsFunc(all, func(s *suspect) bool { return s.rule.Signature == "worker-killed" }) {
		for _, s := range past {
			if s.rule.Category == job.CPUOOM {
				return []*suspect{s}
			}
		}
	}
	if slices.ContainsFunc(all, (*suspect).crashed) { // the report that a worker was lost follows from its crash
		all = slices.DeleteFunc(all, func(s *suspect) bool { return s.rule.Signature == "worker-killed" })
	}
	if st.mixed || len(all) == 0 || verdict(all) != nil {
		return all
	}
	best := all[0]
	for _, s := range all[1:] { // prefer the last of several exceptions, but the first of other signs
		if d := cmp.Compare(s.tier(), best.tier()); d < 0 || d == 0 && (s.merit() < best.merit() || s.merit() == best.merit() && python(s.sign) && !s.rule.Is(rule.Cascade)) {
			best = s
		}
	}
	return []*suspect{m.firstStep(st, explained(cancelled(best, all), all))}
}

// cutShort reports whether the logs show a failure after the sign, which says that the program is stopped early: the
// program or its supervisor did not end well.
func (s *stream) cutShort(g *sign.Sign) bool {
	failed := func(o *stream) bool {
		return o.log().Failed() || o != s && (o.reportedEnd() >= 0 || outlook.StopCode(o.text[len(o.text)-1]))
	}
	return outlook.StopCode(s.text[g.At]) || s.reportedEnd() > g.At || s.log().Failed() || slices.ContainsFunc(s.beside, failed) || slices.ContainsFunc(s.partners, failed) ||
		s.Plain[len(s.text)]-s.Plain[g.To] <= ordinaryRun && slices.ContainsFunc(s.text[g.To:], outlook.StopCode)
}

// loggedBefore reports whether three things happened in this order: the program logged the error of the sign, it logged
// that it does something else, and an exception ended it. If the sign is only a warning, the second is not required.
func (s *stream) loggedBefore(g *sign.Sign) bool {
	level, _ := message.Record(s.text[g.From])
	if g.Plain && level == message.Warning && !g.Rule.Is(rule.Verdict) {
		return s.exceptionAfter(g)
	}
	if !g.Plain || level != message.Error || s.mixed {
		return false
	}
	went := false
	for i := g.To; i < len(s.text); i++ {
		if level, _ := message.Record(s.text[i]); level == message.Info {
			went = true
		}
		if went && slices.ContainsFunc(s.Signs, func(o *sign.Sign) bool {
			return o.From == i && !o.Plain && o.Report == nil && o.Rule != g.Rule && !o.Caught(s.text)
		}) {
			return true
		}
	}
	return false
}

// scriptWentOn reports whether a sign is what a shell says about a command of a script, and the script started a program
// after it that ended with an exception.
func (s *stream) scriptWentOn(g *sign.Sign) bool { return g.OfScript() && s.exceptionAfter(g) }

// exceptionAfter reports whether an exception that may have ended a program follows a sign in the same log.
func (s *stream) exceptionAfter(g *sign.Sign) bool {
	return slices.ContainsFunc(s.beside, func(o *stream) bool {
		return slices.ContainsFunc(o.Signs, func(later *sign.Sign) bool {
			exception := later.Class != "" && later.Class != rule.Message && !later.Rule.Is(rule.Cascade) && !later.Caught(o.text)
			return exception && o.lines[later.From].Line > s.lines[g.To-1].Line
		})
	})
}

// messages returns suspects for the error messages anywhere in the log of several ranks. The other
// ranks may have printed much after the one that failed. If early is true, a program that failed may also have
// printed the message before it printed what it had kept in a buffer.
func (m *member) messages(st *stream, early bool) (all []*suspect) {
	marks := st.marks()
	for i := range st.text {
		if marks[i]&outlook.Error == 0 {
			continue
		}
		said := message.At(st.text, i)
		if said == nil {
			continue
		}
		g := sign.Spoken(said)
		if g.Rule = g.Match(st.book); g.Rule == nil || g.Rule.Is(rule.Cascade) || st.outlived(g) || st.survived(g) && !(early && st.buffered(g) && !outlook.Recovers(g.Title)) {
			continue
		}
		s := m.suspect(st, g)
		s.confidence -= 0.3
		if all = append(all, s); len(all) == maxMessages {
			break
		}
	}
	return all
}

// maxMessages is the largest number of error messages of one log that become suspects.
const maxMessages = 50

// wentOn reports whether a suspect is a plain line after which its program went on: after the last sign of the same
// kind, the log shows much ordinary output and no error.
func (s *suspect) wentOn() bool {
	if s.stream == nil || !s.sign.Plain || s.rule.Is(rule.Verdict) {
		return false
	}
	st := s.stream
	fatal := s.crashed() || s.rule.Category == job.MPIError || s.rule.Category == job.Assertion
	banner := s.sign.From > 0 && message.Separator(st.text[s.sign.From-1]) && (s.rule.Category == job.LaunchError || s.rule.Category == job.MPIRuntime || s.rule.Category == job.HostLost)
	if fatal || banner || st.buffered(s.sign) {
		return false
	}
	end := s.sign.To
	for _, g := range st.Signs {
		if g.Rule.Signature == s.rule.Signature {
			end = max(end, g.To)
		}
	}
	return st.Plain[len(st.text)]-st.Plain[end] >= muchOutput && !slices.ContainsFunc(st.marks()[end:], func(m outlook.Mark) bool { return m&(outlook.Error|outlook.Bad) != 0 })
}

// muchOutput is how many ordinary lines count as much output.
const muchOutput = 12

// crashed reports whether a suspect is the crash of a process.
func (s *suspect) crashed() bool {
	return s.rule.Category == job.CoreDump || s.rule.Category == job.InvalidMemoryAccess
}

// The tiers of suspects if only logs are known. A suspect of a lower tier counts more, whatever its time.
const (
	tierCause   = iota // says what went wrong
	tierGeneric        // an exception or message that says little
	tierPeer           // a failure that another rank may have caused
	tierKilled         // a process was killed from outside
	tierWait           // the rank waited for another rank, or another rank refused its connection
	tierAbort          // the rank ended itself
	tierCascade        // another consequence
	tierEnded          // the launcher, the batch system or a watchdog ended the rank
	tierMute           // only an exit code
)

// inTable reports whether a suspect is a row of torchrun's table of failures which says that SIGTERM ended a rank.
// torchrun makes the table before it ends the other ranks, so that the signal came from elsewhere.
func (s *suspect) inTable() bool {
	return s.sign != nil && s.sign.Report != nil && s.stream != nil && slices.ContainsFunc(s.stream.text[s.sign.From:min(len(s.stream.text), s.sign.To+reporterLines)], endreport.TableSignal)
}

func (s *suspect) tier() int {
	r := s.rule
	switch {
	case r.Is(rule.Verdict) && r.Is(rule.Generic):
		return tierEnded
	case s.inTable() && s.signal == 15:
		return tierKilled
	case r.Category == job.Killed && (s.signal == 15 || s.signal == 2 || s.signal == 1):
		return tierEnded
	case r.Is(rule.Mute) && s.signal != 0:
		return tierEnded
	case r.Category == job.MPIError && r.Is(rule.Mute), r.Category == job.CoreDump && r.Is(rule.Generic):
		return tierAbort
	case r.Is(rule.Mute), r.Signature == "peer-failed", s.sign != nil && s.sign.Class == "SignalException":
		return tierMute
	case r.Is(rule.Cascade) && (r.Category == job.CollectiveTimeout || r.Signature == "connection-refused"):
		return tierWait
	case r.Is(rule.Cascade):
		return tierCascade
	case r.Category == job.Killed && r.Is(rule.Generic):
		return tierKilled
	case r.Is(rule.Peer):
		return tierPeer
	case r.Is(rule.Generic), s.sign != nil && s.sign.Class == rule.Message && r.Signature == rules.ProgramError:
		return tierGeneric
	}
	return tierCause
}

// chooseFromLogs returns the cause among the suspects of logs: the first of those with the lowest tier.
func chooseFromLogs(all []*suspect) *suspect {
	if v := verdict(all); v != nil {
		return explained(v, all)
	}
	var best *suspect
	for _, s := range all {
		if d := -1; best != nil {
			if d = cmp.Compare(s.tier(), best.tier()); d > 0 || d == 0 && !before(s, best) {
				continue
			}
		}
		best = s
	}
	return lowest(explained(lowest(cancelled(best, all), all), all), all)
}

// explained returns the suspect that explains best, or best if there is none. For instance, a monitor's report of a
// faulty GPU explains a GPU error that a program saw, and a rank's exception explains why that rank called MPI_Abort.
func explained(best *suspect, all []*suspect) *suspect {
	if best == nil {
		return nil
	}
	for _, s := range all {
		if best.rule.Signature == "ssh-denied" && s.rule.Signature == "daemons-missing" {
			s.rule = rules.Named("daemon-not-started")
		}
		switch {
		case best.rule.Category == job.MPIRuntime && s.sign != nil && best.sign != nil && (s.crashed() || s.rule.Category == job.Assertion) && placeBefore(s, best),
			best.rule.Category == job.CUDAInit && s.rule.Category == job.CUDAVersion && s.rank == best.rank,
			best.rule.Signature == "daemon-not-started" && s.rule.Category == job.HostLost,
			best.rule.Signature == "daemons-missing" && s.rule.Category == job.HostLost,
			best.rule.Signature == "unreachable" && s.rule.Signature == "daemon-host-lost",
			best.rule.Signature == "worker-killed" && s.rule.Category == job.CPUOOM,
			best.rule.Signature == "ssh-denied" && s.rule.Signature == "daemon-not-started",
			best.rule.Signature == "timeout-command" && s.rule.Category == job.Hang,
			best.rule.Signature == "python-memory-error" && s.rule.Category == job.GPUOOM,
			best.rule.Signature == "sigbus" && s.rule.Category == job.DiskFull,
			best.rule.Signature == "nccl-cuda" && s.rule.Signature == "nccl-network",
			best.rule.Category == job.HostLost && s.rule.Signature == "node-shutdown" && outlook.ShutsDown(s.title()),
			s.rule.Category == job.GPUHardware && (best.rule.Category == job.CUDAFailure || best.rule.Category == job.CUDAInit || best.rule.Is(rule.Generic|rule.Cascade)),
			best.rule.Category == job.MPIError && best.rule.Is(rule.Mute) && s.rank == best.rank && s.sign != nil && s.sign.Class != "" && !s.rule.Is(rule.Mute):
			if s.rank < 0 {
				s.rank, s.host = best.rank, best.host
			}
			return s
		}
	}
	return best
}

// lowest returns the suspect of the lowest rank that failed with the same words as s.
func lowest(s *suspect, all []*suspect) *suspect {
	if s == nil || s.rank < 0 {
		return s
	}
	for _, o := range all {
		if o.rank >= 0 && o.rank < s.rank && o.rule.Signature == s.rule.Signature && o.tier() == s.tier() && logtext.Alike(o.title(), s.title()) {
			s = o
		}
	}
	return s
}

// verdict returns what the system that runs the job says about the job, unless the program failed earlier.
func verdict(all []*suspect) *suspect {
	var first *suspect
	for _, s := range all {
		if s.tier() == tierCause && (first == nil || s.prior(first)) {
			first = s
		}
	}
	if first == nil || !first.rule.Is(rule.Verdict) {
		return nil
	}
	return first
}

// prior reports whether s comes before another suspect. If their order is not known and only one of them is a verdict,
// the verdict counts as the first.
func (s *suspect) prior(than *suspect) bool {
	if s.stream != nil && than.stream != nil && (s.time.IsZero() || than.time.IsZero()) && s.stream.lines[0].File != than.stream.lines[0].File && s.rule.Is(rule.Verdict) != than.rule.Is(rule.Verdict) {
		return s.rule.Is(rule.Verdict)
	}
	return before(s, than)
}

// cancelled returns the batch system's report that it cancelled the job, if best may follow from that: the report comes
// before best in the same log, or best is an end by SIGTERM. If best is that report, cancelled returns the end of a rank
// that the launcher reported above it: the batch system also cancels a step after a rank failed. If best is a report of
// SIGKILL, and a rank above it ended with a code in hydra's words, or had called MPI_Abort and ended with a code,
// cancelled returns that rank's end or call: launchers kill the other ranks. Otherwise cancelled returns best.
func cancelled(best *suspect, all []*suspect) *suspect {
	if best == nil || best.stream == nil || best.tier() < tierKilled && !best.rule.Is(rule.Cascade) {
		return best
	}
	reported := func(s *suspect) bool { return s.tier() == tierMute && s.sign != nil && s.sign.Report != nil }
	for _, s := range all {
		first := false
		switch {
		case s.stream == nil:
		case best.tier() == tierKilled:
			first = best.sign.Report != nil && placeBefore(s, best) && (reported(s) && s.title() == best.title() || s.tier() == tierAbort && s.rule.Category == job.MPIError &&
				slices.ContainsFunc(all, func(o *suspect) bool { return reported(o) && o.rank == s.rank }))
		case best.rule.Category == job.Cancelled && best.tier() == tierEnded:
			first = reported(s) && placeBefore(s, best)
		default:
			first = s.rule.Category == job.Cancelled && s.sign.Plain && s.rule.Is(rule.Verdict) && (placeBefore(s, best) || best.rule.Category == job.Killed && best.signal == 15 && best.tier() == tierEnded)
		}
		if first {
			return s
		}
	}
	return best
}

// placeBefore reports whether a is above b in the same log.
func placeBefore(a, b *suspect) bool {
	x, y := a.stream.lines[a.sign.From], b.stream.lines[b.sign.From]
	return x.File == y.File && x.Line < y.Line
}

// repeated reports whether s is a plain line, and an exception soon after it says the same.
func repeated(s *suspect, all []*suspect) bool {
	return s.sign.Plain && slices.ContainsFunc(all, func(o *suspect) bool {
		return !o.sign.Plain && o.rule.Signature == s.rule.Signature && o.sign.From >= s.sign.To && o.sign.From <= s.sign.To+adjacentLines
	})
}
