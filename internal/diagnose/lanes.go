package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/culprit"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
)

// ranksOf returns the rank of each line of a log whose lines are marked with their ranks, or nil.
func (s *stream) ranksOf() []int {
	if !s.known.laned && s.rank < 0 && !s.records() {
		s.known.lanes = logtext.Lanes(s.text)
		s.known.silent = culprit.FirstSilent(s.known.lanes)
	}
	s.known.laned = true
	return s.known.lanes
}

// closing returns the line number of the first of the lines that all ranks of a log print when they end, or -1 if there
// are no such lines.
func (s *stream) closing() int {
	if s.known.closed {
		return s.known.closing
	}
	s.known.closed, s.known.closing = true, -1
	if lanes := s.ranksOf(); lanes != nil {
		if i := culprit.Closing(s.text, lanes); i >= 0 && s.works(i) {
			s.known.closing = s.lines[i].Line
		}
		return s.known.closing
	}
	var text []string
	var lanes, at []int
	for _, o := range s.beside {
		if o.rank >= 0 && !o.works(len(o.text)-1) {
			return -1
		}
		for i := max(0, len(o.text)-lastWords); i < len(o.text) && o.rank >= 0; i++ {
			text, lanes, at = append(text, o.text[i]), append(lanes, o.rank), append(at, o.lines[i].Line)
		}
	}
	if i := culprit.Closing(text, lanes); i >= 0 {
		s.known.closing = at[i]
	}
	return s.known.closing
}

// works reports whether line i may come from a program that does its work: it belongs to no sign of failure and
// announces no error.
func (s *stream) works(i int) bool {
	return s.marks()[i]&(outlook.Aside|outlook.Error|outlook.Bad|outlook.Long) == 0 && outlook.Ordinary(s.text[i])
}

// leftAlike reports whether a log has several ranks and all of them end with the same words, so that none ended early.
func (s *stream) leftAlike() bool {
	end, ranks := s.text[len(s.text)-1], 0
	for _, o := range s.beside {
		if o.rank >= 0 && o.text[len(o.text)-1] != end {
			return false
		}
		ranks += min(max(o.rank+1, 0), 1)
	}
	return s.rank >= 0 && ranks > 1
}

// lastWords is how many lines at the end of a rank's output show how the rank ends.
const lastWords = 50

// lanesGoOn reports whether the rank that printed a sign goes on with its work, if the lines are marked with their
// ranks. If the line of the sign has no mark, all ranks must go on.
func (s *stream) lanesGoOn(g *sign.Sign) bool {
	lanes := s.ranksOf()
	if lanes == nil || g.Report != nil || g.Rule.Is(rule.Verdict) {
		return false
	}
	owner, after, going := s.where(g).Marked(), map[int]int{}, 0
	if owner < 0 && s.known.silent <= g.To {
		return false
	}
	ranks := map[int]bool{}
	for _, r := range lanes {
		if r >= 0 {
			ranks[r] = true
		}
	}
	for i := g.To; i < len(lanes); i++ {
		r := lanes[i]
		if r < 0 || !s.works(i) || s.marks()[i]&outlook.Advance == 0 && !s.log().Usual(g.From, i) {
			continue
		}
		if after[r]++; after[r] == goneOn {
			going++
		}
		if after[owner] >= goneOn || owner < 0 && going == len(ranks) {
			return true
		}
	}
	return false
}
