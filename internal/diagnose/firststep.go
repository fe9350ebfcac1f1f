package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/steps"
	"github.com/gangrun/gangrun/internal/job"
)

// firstStep returns the failure of an earlier step of a script that explains the suspect later. The suspect later says
// that something is missing, such as a file, a module or a command, which the earlier step should have made or fetched.
// firstStep returns later if it finds no such failure.
func (m *member) firstStep(st *stream, later *suspect) *suspect {
	if g := later.sign.EffectOf(st.Signs); g != nil && !st.log().Advances(g.To, later.sign.From) {
		return m.suspect(st, g)
	}
	if !steps.Lacks(later.rule, later.sign.Title) {
		return later
	}
	for _, g := range st.Signs {
		if g.To > later.sign.From {
			break
		}
		if steps.Fails(g.Rule) && (g.Plain && (steps.Tool(g.Title) || strings.Contains(g.Title, "(total=0,")) || (!g.Weak || g.Class != "") && !st.survived(g)) && !outlook.Recovers(g.Title) && (!steps.Warns(g.Title) || g.Rule.Category == job.CheckpointError) {
			s := m.suspect(st, g)
			if s.rule.Category == job.HostLost { // no rank ran on that host
				s.rule = rules.Named("ssh-failed")
			}
			return s
		}
	}
	for _, s := range m.messages(st, true) {
		known := s.rule.Signature != rules.ProgramError && s.rule.Signature != later.rule.Signature
		if s.sign.To <= later.sign.From && (known || later.sign.Weak && steps.Tool(later.sign.Title)) {
			return s
		}
	}
	return later
}
