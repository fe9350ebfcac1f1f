package diagnose

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
)

// flight is what the flight recorders of PyTorch show of a job.
type flight struct{ flightrecord.Findings }

// flightSure is the confidence of a cause that flight records show: a rank that did not call a collective.
const flightSure = 0.85

// suspects returns the suspects that follow from the flight records alone.
func (f flight) suspects() []*suspect {
	if len(f.Blamed) == 0 {
		return nil
	}
	return []*suspect{{rule: rules.Named("nccl-timeout"), rank: -1, confidence: flightSure, names: map[string]string{"title": "others waited in a collective in vain"}}}
}

// about reports whether the flight records can add something to a suspect. That is so if the suspect waited in vain for
// other ranks, and does not itself name the rank for which it waited.
func (f flight) about(s *suspect) bool {
	named := s.sign != nil && s.rule.Groups(s.sign.Text)["rank"] != ""
	return len(f.Problems) > 0 && !named && (s.rule.Category == job.CollectiveTimeout || s.rule.Category == job.Hang)
}

// blame puts the blame on the rank for which a suspect waited in vain.
func (f flight) blame(s *suspect) {
	if len(f.Blamed) == 0 || !f.about(s) {
		return
	}
	s.confidence = max(s.confidence, flightSure)
	if !slices.Contains(f.Blamed, s.rank) {
		s.rank, s.host = f.Blamed[0], f.Line(f.Blamed[0]).Host
	}
}
