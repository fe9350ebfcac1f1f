package diagnose

import (
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// A line that matches a rule and the program's own error message are about the same failure if at most so many lines
// separate them in one stream, or at most so much time in two streams.
const (
	adjacentLines = 10
	adjacentTime  = 250 * time.Millisecond
)

// said returns the member's own error message if it was its last message, so that no stream shows work after it.
func (m *member) said() *suspect {
	var best *suspect
	for _, st := range m.streams {
		g := st.Message
		if g == nil || st.Plain[len(st.text)]-st.Plain[g.To] > weakTrail || slices.ContainsFunc(st.text[g.To:], message.Advance.MatchString) ||
			!m.quietAfter(st, g, weakTrail) || m.advanced(st, g) || m.outlived(st, g) {
			continue
		}
		s := m.suspect(st, g)
		if best == nil || s.betterSaid(best) {
			best = s
		}
	}
	return best
}

// betterSaid reports whether s is a better message of a rank than another. A message that a rule knows is better than
// others; then a message on stderr is; then the later one.
func (s *suspect) betterSaid(than *suspect) bool {
	rank := func(s *suspect) int {
		n := 0
		if s.rule.Signature == rules.ProgramError {
			n += 2
		}
		if s.stream.lines[0].Source != job.SourceStderr {
			n++
		}
		return n
	}
	if a, b := rank(s), rank(than); a != b {
		return a < b
	}
	return than.time.Before(s.time)
}

// advanced reports whether another stream of the member shows further work after a sign.
func (m *member) advanced(st *stream, g *sign.Sign) bool {
	seen := st.time(g.At)
	if seen.IsZero() {
		return false
	}
	for _, other := range m.streams {
		if other == st {
			continue
		}
		for i := len(other.lines) - 1; i >= 0 && other.lines[i].Time.After(seen.Add(time.Second)); i-- {
			if message.Advance.MatchString(other.text[i]) {
				return true
			}
		}
	}
	return false
}

// spoken returns a suspect made from the last words of a rank that ended itself without an error message, if these
// words tell the category. Otherwise it returns s.
func (s *suspect) spoken(members []*member) *suspect {
	if !s.rule.Is(rule.Mute) || s.signal != 0 || s.rank < 0 {
		return s
	}
	for _, m := range members {
		for _, st := range m.streams {
			to := len(st.text)
			if st == s.stream && m.rank < 0 { // the launcher's report is in the output of all ranks
				to = s.sign.From
			} else if m.rank != s.rank {
				continue
			}
			if g := sign.LastWords(st.text[:to], st.book); g != nil {
				o := m.suspect(st, g)
				if o.confidence -= 0.2; o.rank < 0 {
					o.rank = s.rank
				}
				return o
			}
		}
	}
	return s
}

// tellsMore reports whether a program's own error message says more than strong, the strongest other sign of its rank.
// That is so if strong only follows from the rank's end, or was printed long before.
func (s *suspect) tellsMore(strong *suspect) bool {
	switch {
	case strong == nil || strong.rule.Is(rule.Mute) && (strong.sign.Plain || strong.sign.Report != nil), strong.rule.Is(rule.Cascade) && strong.rule.Is(rule.Generic):
		return true
	// The launcher killed the ranks after the message.
	case strong.rule.Category == job.Killed && strong.sign.Report != nil && outlook.Stops(s.sign.Title):
		return true
	case !strong.sign.Plain:
		return false
	case strong.stream == s.stream && strong.sign.From >= s.sign.To && (strong.rule.Is(rule.Peer|rule.Cascade) || strong.tier() == tierAbort):
		return true
	case strong.stream == s.stream:
		return strong.sign.To+adjacentLines < s.sign.From
	}
	return !strong.time.IsZero() && !s.time.IsZero() && s.time.Sub(strong.time).Abs() > adjacentTime
}
