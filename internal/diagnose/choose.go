package diagnose

import (
	"cmp"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// choose returns the first suspect that is no echo. One that says little
// yields to an echo that was there clearly before it; one that a peer's death
// brings about, to such a death.
func choose(all []*suspect) *suspect {
	var root, echo *suspect
	for _, s := range all {
		if s.beside {
			continue
		}
		into := &root
		if s.rule.Is(rules.Cascade) {
			into = &echo
		}
		if *into == nil || before(s, *into) {
			*into = s
		}
	}
	switch {
	case root == nil && echo == nil:
		return nil
	case root == nil:
		return echo
	case echo != nil && root.rule.Is(rules.Generic) && root.record == nil && !echo.time.IsZero() && root.time.Sub(echo.time) > clearly:
		return echo
	case root.rule.Is(rules.Peer) && root.rank >= 0:
		return deathBehind(root, all)
	case root.rule.Is(rules.Mute) && root.signal == 0:
		return speaker(root, all)
	}
	return root
}

// speaker returns the rank that said why the gang ended at about the time when
// another one ended without a word, or that other one: the ranks of a program
// end together, and mostly one of them tells why.
func speaker(mute *suspect, all []*suspect) *suspect {
	var said *suspect
	for _, s := range all {
		if s.sign == nil || s.rule.Is(rules.Mute) || s.rule.Is(rules.Cascade) || s.rule.Is(rules.Peer) || s == mute {
			continue
		}
		after := s.time.Sub(mute.time)
		together := s.time.IsZero() || mute.time.IsZero() || after <= clearly
		if s.beside {
			together = together && !s.time.IsZero() && after >= -clearly
		}
		if together && (said == nil || before(s, said)) {
			said = s
		}
	}
	return cmp.Or(said, mute)
}

// deathBehind returns the end of another rank that may be behind what a rank
// suffered, or that itself: which of the two was noted first says little.
func deathBehind(suffered *suspect, all []*suspect) *suspect {
	var death *suspect
	for _, s := range all {
		own := !s.rule.Is(rules.Cascade) && !s.rule.Is(rules.Peer) && s.rank != suffered.rank && s.exit != nil && !s.exit.Good() && !s.exit.Stopped
		if own && (death == nil || before(s, death)) && (s.time.IsZero() || suffered.time.IsZero() || s.exit.Time.Sub(suffered.time) <= clearly) {
			death = s
		}
	}
	return cmp.Or(death, suffered)
}

// firstToEnd returns, of the ranks that failed for the same reason as s at about
// the same time, the one whose end was seen first. That end is why the gang was
// ended, so the cause and the exit code name the rank that the user was told of.
func firstToEnd(s *suspect, all []*suspect) *suspect {
	first := s
	for _, o := range all {
		same := o.rule.Category == s.rule.Category && o.rule.Signature == s.rule.Signature && o.confidence >= s.confidence
		if s.recorded() && s.sign.title != o.title() { // which error came first is known exactly
			continue
		}
		near := s.time.IsZero() || o.time.IsZero() || o.time.Sub(s.time).Abs() <= clearly
		if same && near && o.endedItself() && s.exit != nil && (o.order < first.order || first.exit.Stopped) {
			first = o
		}
	}
	return first
}

// recorded reports whether the suspect is what a rank has written to its error file.
func (s *suspect) recorded() bool {
	return s.stream != nil && s.stream.lines[0].Source == job.SourceErrorFile
}

func (s *suspect) title() string {
	if s.sign == nil {
		return ""
	}
	return s.sign.title
}

// endedItself reports whether the suspect is about a rank that failed by itself.
func (s *suspect) endedItself() bool {
	return s.exit != nil && s.exit.Rank == s.rank && !s.exit.Good() && !s.exit.Stopped && !s.beside
}

// clearly is how much earlier one event must have been seen than another, on
// different hosts, to have been earlier.
const clearly = 2 * time.Second
