package diagnose

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Patterns are compiled when they are used, so a wrong one must be found here.
func TestPatternsCompile(t *testing.T) {
	compile := func(what string, p *textmatch.Pattern) {
		defer func() {
			if wrong := recover(); wrong != nil {
				t.Errorf("%s: %v", what, wrong)
			}
		}()
		if p != nil {
			p.Compile()
		}
	}
	for _, r := range rules.All() {
		for _, p := range []*textmatch.Pattern{r.Match, r.Find, r.Unless, r.Context} {
			compile(string(r.Category)+" "+r.Signature, p)
		}
	}
}
