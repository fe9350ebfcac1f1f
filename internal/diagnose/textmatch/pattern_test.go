package textmatch

import (
	"regexp"
	"slices"
	"testing"
)

// patterns has expressions with various needs.
var patterns = []string{
	`(?i)\b(?:training|run)\b.{0,40}\b(?:done|completed?|ok)\b|\bjob (?:succeeded|done)`, `^\s*\d+/\d+`, `(?i)out of memory`, `a(?:bc|bd)+x?`,
	`(?i)exit(?:ed)?[ _-]code\W{0,3}[1-9]\d{0,2}\b`, `[A-C]x|yz`, `(?m)^FAILED$`, `x*`, `(?:ab|cd){2,3}e`, `é(?:a|b)cd`, `(?i)kiss|é`, `\x00abc`, `(?i)[k-m]elvin`, ``,
}

// FuzzPattern checks that a Pattern matches what its regular expression matches.
func FuzzPattern(f *testing.F) {
	for _, p := range patterns {
		for _, text := range []string{"", "Training finished, job done", "run OK", "exited code: 7", "abcabdx", "abcde", "ababe", "KISS me", "\u212aI\u017fs", "\u212aelvin", "FAILED\n", "\x00ABC\x00abc", "éacd"} {
			f.Add(p, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 {
			return // unusually long
		}
		p := New(pattern)
		if got, want := p.MatchString(text), re.MatchString(text); got != want {
			t.Errorf("%q in %q: %v, want %v", pattern, text, got, want)
		}
		if got, want := p.FindStringSubmatch(text), re.FindStringSubmatch(text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %q, want %q", pattern, text, got, want)
		}
		if got, want := p.FindStringIndex(text), re.FindStringIndex(text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %v, want %v", pattern, text, got, want)
		}
		if got, want := p.ReplaceAllString(text, "-"), re.ReplaceAllString(text, "-"); got != want {
			t.Errorf("%q in %q: %q, want %q", pattern, text, got, want)
		}
	})
}

// TestNeeds checks that in is false for most texts that do not match.
func TestNeeds(t *testing.T) {
	p := patterns[0]
	for text, want := range map[string]bool{
		"step 12 | loss 0.25": false, "training starts": false, "it is done": false, "the job is here": false,
		"training is done": true, "RUN OK": true, "Job succeeded": true,
	} {
		if got := needsOf(p).in(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, p := range []string{``, `x*`, `^\s*\d+/?\d+`, `(?:ab)?|cd`, `.`} {
		if needsOf(p) != nil {
			t.Errorf("%q has needs", p)
		}
	}
}
