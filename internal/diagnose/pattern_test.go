package diagnose

import "testing"

// Patterns are compiled when they are used, so a wrong one must be found here.
func TestPatternsCompile(t *testing.T) {
	compile := func(what string, p *pattern) {
		defer func() {
			if wrong := recover(); wrong != nil {
				t.Errorf("%s: %v", what, wrong)
			}
		}()
		if p != nil {
			p.compiled()
		}
	}
	for _, r := range Rules() {
		for _, p := range []*pattern{r.Match, r.Find, r.Unless, r.Context} {
			compile(string(r.Category)+" "+r.Signature, p)
		}
	}
	for _, p := range links {
		compile("links", p)
	}
	compile("escapes", escapes)
	compile("prefixes", prefixes)
}
