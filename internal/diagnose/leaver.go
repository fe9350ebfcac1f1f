package diagnose

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// leaver returns a suspect for the rank that ended with code 0 although other ranks still needed it, if s is the loss
// of a connection and that rank ended before it. Otherwise it returns s.
func leaver(s *suspect, members []*member) *suspect {
	if s.rule.Category != job.NetworkError || !s.rule.Is(rule.Cascade) || s.exit == nil || s.exit.Time.IsZero() {
		return s
	}
	var first *member
	for _, m := range members {
		early := m.exit != nil && m.exit.Good() && !m.exit.Stopped && !m.exit.Time.IsZero() && m.exit.Time.Before(s.exit.Time)
		if early && (first == nil || m.order < first.order) {
			first = m
		}
	}
	if first == nil {
		return s
	}
	left := first.end()
	left.rule = rules.Named("zero-exit")
	left.sign, left.confidence = &sign.Sign{Title: "other ranks still needed it: " + s.title()}, s.confidence
	return left
}
