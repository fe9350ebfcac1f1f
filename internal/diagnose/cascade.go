package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// Unclear reports whether the output of a rank does not tell why the rank ended: its last line on stderr looks
// like a consequence of another rank's failure, or the rank ended itself without an error message. If such a
// rank is the first to end, the caller may wait a moment until another rank shows the cause.
func Unclear(exit job.Exit, printed []job.Line) bool {
	last := ""
	for _, l := range printed {
		if l.Source == job.SourceStderr && strings.TrimSpace(l.Text) != "" {
			last = l.Text
		}
	}
	if last != "" && sign.Cascade(last) {
		return true
	}
	members, _ := sortOut(job.Evidence{Lines: printed, Outcome: job.Outcome{Exits: []job.Exit{exit}}}, rules.Standard())
	for _, m := range members {
		for _, s := range m.suspects(true) {
			if !s.rule.Is(rule.Mute) || s.signal > 0 {
				return false
			}
		}
	}
	return true
}

// others returns the other ranks on which the same failure arose independently, in order. It also returns how many
// further ranks failed as a consequence.
func (s *suspect) others(all []*suspect) (also []int, cascades int) {
	after := map[int]bool{}
	for _, o := range all {
		switch {
		case o == s || o.rank < 0 || o.rank == s.rank:
		case o.rule.Is(rule.Cascade) && !s.rule.Is(rule.Cascade):
			after[o.rank] = true
		case o.rule.Signature == s.rule.Signature && !o.rule.Is(rule.Cascade|rule.Mute) && o.signal == s.signal && logtext.Alike(o.title(), s.title()):
			also = append(also, o.rank)
		}
	}
	slices.Sort(also)
	also = slices.Compact(also)
	for _, r := range also {
		delete(after, r)
	}
	return also, len(after)
}
