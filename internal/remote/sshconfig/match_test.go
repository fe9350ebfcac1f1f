package sshconfig

import "testing"

func FuzzMatchPattern(f *testing.F) {
	f.Add("n1.example.org", "n?.*.org")
	f.Add("", "*")
	f.Add("aaaaaaaaaaaaaaaa", "*a*a*a*a*b")
	f.Fuzz(func(t *testing.T, s, pattern string) {
		if len(s) > 30 || len(pattern) > 12 { // matchSlowly would take too long
			return
		}
		if got, want := MatchPattern(s, pattern), matchSlowly(s, pattern); got != want {
			t.Fatalf("MatchPattern(%q, %q) = %v", s, pattern, got)
		}
	})
}

// matchSlowly matches by the plain rule, without the optimisations of match.
func matchSlowly(s, pattern string) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == '*':
		return matchSlowly(s, pattern[1:]) || s != "" && matchSlowly(s[1:], pattern)
	}
	return s != "" && (pattern[0] == '?' || pattern[0] == s[0]) && matchSlowly(s[1:], pattern[1:])
}
