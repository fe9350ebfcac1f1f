package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
)

// Unclear reports whether what a rank printed leaves open why it ended: its last
// line on stderr reads like the echo of another rank's failure, or it ended
// itself without a word. Whoever sees such an end first may give the rank that
// knows more a moment to show.
func Unclear(exit job.Exit, printed []job.Line) bool {
	last := ""
	for _, l := range printed {
		if l.Source == job.SourceStderr && strings.TrimSpace(l.Text) != "" {
			last = l.Text
		}
	}
	if last != "" && Cascade(last) {
		return true
	}
	members, _ := sortOut(job.Evidence{Lines: printed, Outcome: job.Outcome{Exits: []job.Exit{exit}}})
	for _, m := range members {
		for _, s := range m.suspects(true) {
			if !s.rule.Is(rules.Mute) || s.signal > 0 {
				return false
			}
		}
	}
	return true
}

// Cascade reports whether a line of output reads like the echo of another
// rank's failure: a peer that closed its connection, a collective that timed
// out. Whoever sees such a line first may give the culprit a moment to show.
func Cascade(text string) bool {
	t := plainText(text)
	g := &sign{text: t}
	if errorLine(t) {
		e := headless([]string{t}, 0)
		g = e.sign()
	}
	r := g.match()
	return r != nil && r.Is(rules.Cascade)
}
