package sign

import (
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
)

// Cascade reports whether a line of output looks like a consequence of another rank's failure, as when
// another rank closed its connection or a collective timed out. If such a line comes first, the caller
// may wait a moment until another rank shows the cause.
func Cascade(text string) bool {
	t := logtext.Plain(text)
	g := &Sign{Text: t}
	if pytrace.ErrorLine(t) {
		e := pytrace.Headless([]string{t}, 0)
		g = OfException(&e)
	}
	r := g.Match(rules.Standard())
	return r != nil && r.Is(rule.Cascade)
}
