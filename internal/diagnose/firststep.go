package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/steps"
	"github.com/gangrun/gangrun/internal/job"
)

// firstStep returns the failure of an earlier step of a script that explains the failure of a later step. The
// later failure is that something is missing: a file, a module, a command. The earlier step should have made it or
// fetched it. firstStep returns later if there is no such failure.
func (m *member) firstStep(st *stream, later *suspect) *suspect {
	if !steps.Lacks(later.rule, later.sign.title) {
		return later
	}
	for _, g := range st.signs {
		if g.to > later.sign.from {
			break
		}
		if steps.Fails(g.rule) && (g.plain && (steps.Tool(g.title) || strings.Contains(g.title, "(total=0,")) || (!g.weak || g.class != "") && !st.survived(g)) && !outlook.Recovers(g.title) && (!steps.Warns(g.title) || g.rule.Category == job.CheckpointError) {
			s := m.suspect(st, g)
			if s.rule.Category == job.HostLost { // nothing else of the job was there
				s.rule = rules.Named("ssh-failed")
			}
			return s
		}
	}
	for _, s := range m.messages(st, true) {
		known := s.rule.Signature != rules.ProgramError && s.rule.Signature != later.rule.Signature
		if s.sign.to <= later.sign.from && (known || later.sign.weak && steps.Tool(later.sign.title)) {
			return s
		}
	}
	return later
}
