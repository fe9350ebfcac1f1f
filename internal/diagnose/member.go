package diagnose

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// A sign counts as the last sign of a stream if at most so many ordinary lines follow it. The limit for a weak sign is
// lower.
const (
	trail     = 50
	weakTrail = 25
)

// How far apart in time two things that belong together may be.
const (
	together = time.Minute      // two signs of one death
	linger   = 2 * time.Minute  // a plain line and the end that it explains
	watchdog = 15 * time.Minute // the same for a Cascade, because watchdogs wait long
)

// member is one rank, with all that is known of it. The member with rank -1 has what belongs to no rank.
type member struct {
	rank    int
	host    string
	exit    *job.Exit // nil if not known
	order   int       // the place of its end among the ends of all ranks
	streams []*stream
}

// suspect is a possible cause of the attempt's failure.
type suspect struct {
	rule       *rule.Rule
	sign       *sign.Sign
	stream     *stream // nil if the end of the rank is the only sign
	rank       int
	host       string
	pid        int
	signal     int
	time       time.Time
	order      int
	names      map[string]string // groups of the rule's match
	confidence float64
	exit       *job.Exit
	member     *member
	record     *job.Line // a host's record that explains the suspect
	// beside is true if gangrun ended the rank. The rank's output then explains only a mute end of another rank.
	beside bool
}

// suspects returns the suspects that follow from the member's own signs. There are none if the rank ended well. If the
// ends of other ranks are known but not its own, it must have a strong sign.
func (m *member) suspects(live bool) []*suspect {
	if m.exit != nil && m.exit.Good() {
		return nil
	}
	if m.exit == nil && !live {
		return m.fromLogs()
	}
	strong, weak := m.best()
	said := m.said()
	if said != nil && !said.tellsMore(strong) {
		said = nil
	}
	if m.exit == nil {
		if strong != nil {
			return []*suspect{strong}
		}
		return nil
	}
	if m.exit.Stopped { // only what the rank printed counts, not how it ended
		if strong != nil && !strong.sign.Plain && strong.rule.Category != job.Killed {
			return []*suspect{strong}
		}
		if said != nil {
			said.beside = true
			return []*suspect{said}
		}
		return nil
	}
	end := m.end()
	switch {
	case m.exit.Status == job.Lost || m.exit.Status == job.Unstarted:
		return []*suspect{end}
	case said != nil && end.rule.Is(rule.Mute):
		return []*suspect{said}
	case strong != nil && !(strong.rule.Is(rule.Cascade) && crash(end.rule)):
		return []*suspect{strong}
	case weak != nil && end.rule.Category == job.Unknown:
		return []*suspect{weak}
	}
	return []*suspect{end}
}

// crash reports whether a rule is about a crash, which no other rank can cause.
func crash(r *rule.Rule) bool {
	return len(r.Ends.Signals) > 0 && !r.Is(rule.Generic) && (r.Category == job.InvalidMemoryAccess || r.Category == job.CoreDump)
}

// best returns the best of the member's signs that it may have ended with, and the best of its weak signs near the end.
func (m *member) best() (strong, weak *suspect) {
	for _, st := range m.streams {
		s, w := m.ofStream(st)
		strong, weak = better(strong, s), better(weak, w)
	}
	return strong, weak
}

func better(a, b *suspect) *suspect {
	if a == nil || b != nil && b.merit() < a.merit() || b != nil && b.merit() == a.merit() && before(b, a) {
		if b == nil {
			return a
		}
		return b
	}
	return a
}

// merit orders the signs of one rank. A lower value is better.
func (s *suspect) merit() int {
	n := 0
	if s.rule.Is(rule.Cascade) {
		n += 4
	}
	if s.rule.Is(rule.Generic) {
		n += 2
	}
	if !python(s.sign) {
		n++
	}
	if s.sign.Plain && s.member.rank >= 0 {
		n += 5 // libraries print much; a rank's exception counts more
	}
	if s.sign.Report != nil && s.rule.Is(rule.Generic) && s.rule.Category != job.Killed {
		n += 6 // a report says how the process ended, but not why
	}
	return n
}

func python(g *sign.Sign) bool { return g != nil && g.Class != "" && g.Context != "" }

// ofStream chooses among the signs of one stream.
func (m *member) ofStream(st *stream) (strong, weak *suspect) {
	end := len(st.text)
	for i := len(st.Signs) - 1; i >= 0; i-- {
		g := st.Signs[i]
		s := m.suspect(st, g)
		if g.Weak {
			if st.Plain[len(st.text)]-st.Plain[g.To] <= weakTrail && m.quietAfter(st, g, weakTrail) && !m.outlived(st, g) {
				weak = better(weak, s)
			}
			continue
		}
		near := end >= 0 && st.Plain[end]-st.Plain[g.To] <= trail
		if end < len(st.text) {
			near = near && !apart(st.time(g.At), st.time(end))
		} else {
			near = near && m.quietAfter(st, g, trail) && !m.outlived(st, g)
		}
		if st.lines[0].Source == job.SourceErrorFile { // exact, whatever the rank printed later
			near = m.exit == nil || m.exit.Time.IsZero() || m.exit.Time.Sub(st.time(g.At)) <= watchdog
		}
		if !near {
			end = -1
			continue
		}
		end = g.From
		// Prefer the last of several exceptions, but the first of other signs.
		if strong == nil || s.merit() < strong.merit() || s.merit() == strong.merit() && !python(g) {
			strong = s
		}
	}
	return strong, weak
}

func apart(a, b time.Time) bool { return !a.IsZero() && !b.IsZero() && b.Sub(a) > together }

// outlived reports whether the member went on for a long time after a plain line or an error message.
func (m *member) outlived(st *stream, g *sign.Sign) bool {
	if m.exit == nil || !g.Plain && g.Class != rule.Message || m.exit.Time.IsZero() || st.time(g.At).IsZero() {
		return false
	}
	limit := linger
	if g.Rule.Is(rule.Cascade) {
		limit = watchdog
	}
	return m.exit.Time.Sub(st.time(g.At)) > limit
}

// quietAfter reports whether the member's other streams have at most limit ordinary lines that were printed more than a
// second after the sign.
func (m *member) quietAfter(st *stream, g *sign.Sign, limit int) bool {
	seen := st.time(g.At)
	if seen.IsZero() {
		return true
	}
	later := 0
	for _, other := range m.streams {
		if other == st {
			continue
		}
		for i := len(other.lines) - 1; i >= 0 && later <= limit; i-- {
			if t := other.lines[i].Time; t.IsZero() || !t.After(seen.Add(time.Second)) {
				break
			}
			if other.Plain[i+1] > other.Plain[i] {
				later++
			}
		}
	}
	return later <= limit
}

func (m *member) suspect(st *stream, g *sign.Sign) *suspect {
	s := &suspect{rule: g.Rule, sign: g, stream: st, rank: m.rank, host: cmp.Or(m.host, st.host), time: st.time(g.From), order: m.order,
		names: g.Rule.Groups(g.Text), confidence: g.Rule.Confidence - g.Discount, exit: m.exit, member: m}
	if s.time.IsZero() && m.exit != nil || g.Weak && m.exit != nil {
		s.time = m.exit.Time
	}
	s.pid = logtext.Number(s.names["pid"])
	if r := g.Report; r != nil {
		s.signal = r.Signal
		s.pid = r.PID
		s.names["signal"] = fmt.Sprintf("%s (signal %d)", job.SignalName(r.Signal), r.Signal)
		s.names["code"] = fmt.Sprint(r.Code)
		s.names["core"] = dumped[r.Core]
		if m.rank < 0 && r.Rank >= 0 {
			s.rank = r.Rank
		}
		if m.rank < 0 && r.Host != "" {
			s.host = r.Host
		}
	}
	if m.rank < 0 {
		if r, ok := s.names["rank"]; ok {
			s.rank = logtext.Number(r)
		} else if s.rank < 0 && (g.Rule.Category == job.MPIError || strings.Contains(g.Text, "MPI_ERR_")) {
			s.rank = st.reporter(g)
		}
		if h, ok := s.names["host"]; ok {
			s.host = h
		}
	}
	if r := s.names["rank"]; m.rank >= 0 && r != "" && namesOther[g.Rule.Category] {
		s.rank, s.host = logtext.Number(r), ""
	}
	return s
}

// namesOther has the categories whose rules name the rank at fault, which is another rank than the one that prints the
// message.
var namesOther = map[job.Category]bool{job.CollectiveTimeout: true, job.HostLost: true, job.Straggler: true, job.Hang: true}

// reporter returns the rank that Open MPI names near an MPI error, or -1.
func (s *stream) reporter(g *sign.Sign) int {
	return endreport.Reporter(s.text[max(0, g.From-reporterLines):min(len(s.text), g.To+reporterLines)])
}

// reporterLines is how many lines before and after an error may name its rank.
const reporterLines = 4

// before reports whether a was seen before b, as far as their order is known.
func before(a, b *suspect) bool {
	// Both mostly have the same reason. gangrun ended the gang because of the failure that was reported first.
	if unstarted(a) && unstarted(b) {
		return a.order < b.order
	}
	if !a.time.IsZero() && !b.time.IsZero() && !a.time.Equal(b.time) {
		return a.time.Before(b.time)
	}
	if a.stream != nil && b.stream != nil {
		x, y := a.stream.lines[a.sign.From], b.stream.lines[b.sign.From]
		if x.File != "" && x.File == y.File && x.Line != y.Line {
			return x.Line < y.Line
		}
	}
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.rank, b.rank), cmp.Compare(a.host, b.host), cmp.Compare(a.rule.Signature, b.rule.Signature)) < 0
}

func unstarted(s *suspect) bool { return s.exit != nil && s.exit.Status == job.Unstarted }
