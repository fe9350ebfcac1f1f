package diagnose

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// TestPatternsCompile finds patterns that do not compile. Otherwise they would be compiled only when they are first
// used.
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
