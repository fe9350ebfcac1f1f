package diagnose

import (
	"cmp"
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// choose returns the first suspect that is not a consequence of another failure (rule.Cascade), with three exceptions.
// A consequence that was clearly earlier counts more than a suspect that says little. The death of another rank counts
// more than a suspect that it may have caused. A rank that printed a reason counts more than a rank that ended without
// one.
func choose(all []*suspect) *suspect {
	var root, consequence *suspect
	for _, s := range all {
		if s.beside {
			continue
		}
		into := &root
		if s.rule.Is(rule.Cascade) {
			into = &consequence
		}
		if *into == nil || before(s, *into) {
			*into = s
		}
	}
	switch {
	case root == nil && consequence == nil:
		return nil
	case root == nil:
		return consequence
	case consequence != nil && root.rule.Is(rule.Generic) && root.record == nil && !consequence.time.IsZero() && root.time.Sub(consequence.time) > clearly:
		return consequence
	case root.rule.Is(rule.Peer) && root.rank >= 0:
		return deathBehind(root, all)
	case root.rule.Is(rule.Mute) && root.signal == 0:
		return speaker(root, all)
	}
	return root
}

// speaker returns the suspect whose rank printed a reason at about the time when the rank of mute ended without one. If
// there is none, it returns mute. The ranks of a program end together, and usually one of them prints the reason.
func speaker(mute *suspect, all []*suspect) *suspect {
	var speaks *suspect
	for _, s := range all {
		if s.sign == nil || s.rule.Is(rule.Mute) || s.rule.Is(rule.Cascade) || s.rule.Is(rule.Peer) || s == mute {
			continue
		}
		after := s.time.Sub(mute.time)
		together := s.time.IsZero() || mute.time.IsZero() || after <= clearly
		if s.beside {
			together = together && !s.time.IsZero() && after >= -clearly
		}
		if together && (speaks == nil || before(s, speaks)) {
			speaks = s
		}
	}
	return cmp.Or(speaks, mute)
}

// deathBehind returns the end of another rank that may have caused suffered, or suffered if there is no such end. The
// two events may have been recorded in either order.
func deathBehind(suffered *suspect, all []*suspect) *suspect {
	var death *suspect
	for _, s := range all {
		own := !s.rule.Is(rule.Cascade) && !s.rule.Is(rule.Peer) && s.rank != suffered.rank && s.exit != nil && !s.exit.Good() && !s.exit.Stopped
		if own && (death == nil || before(s, death)) && (s.time.IsZero() || suffered.time.IsZero() || s.exit.Time.Sub(suffered.time) <= clearly) {
			death = s
		}
	}
	return cmp.Or(death, suffered)
}

// firstToEnd returns, among the ranks that failed for the same reason as s at about the same time, the rank whose end
// was seen first. gangrun ended the gang because of that end and named that rank to the user. The cause and the exit
// code must name the same rank.
func firstToEnd(s *suspect, all []*suspect) *suspect {
	first := s
	for _, o := range all {
		same := o.rule.Category == s.rule.Category && o.rule.Signature == s.rule.Signature && o.confidence >= s.confidence
		if s.recorded() && s.sign.Title != o.title() { // the error files show exactly which error came first
			continue
		}
		near := s.time.IsZero() || o.time.IsZero() || o.time.Sub(s.time).Abs() <= clearly
		if same && near && o.endedItself() && s.exit != nil && (o.order < first.order || first.exit.Stopped) {
			first = o
		}
	}
	return first
}

// recorded reports whether the suspect comes from the error file of a rank.
func (s *suspect) recorded() bool {
	return s.stream != nil && s.stream.lines[0].Source == job.SourceErrorFile
}

func (s *suspect) title() string {
	if s.sign == nil {
		return ""
	}
	return s.sign.Title
}

// endedItself reports whether the rank of the suspect failed without being stopped by gangrun.
func (s *suspect) endedItself() bool {
	return s.exit != nil && s.exit.Rank == s.rank && !s.exit.Good() && !s.exit.Stopped && !s.beside
}

// clearly is the time by which an event must precede an event on another host to count as earlier.
const clearly = 2 * time.Second
