package diagnose

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: there
// are hundreds, a diagnosis needs a few, and most of gangrun's processes (every
// agent) need none and must start fast.
type pattern struct {
	text     string
	compiled func() *regexp.Regexp
}

// re returns the pattern of that text, which must be valid: a test compiles all.
func re(text string) *pattern {
	return &pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// String returns the text of the expression.
func (p *pattern) String() string { return p.text }

// MatchString is that of regexp.Regexp.
func (p *pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (p *pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// SubexpNames is that of regexp.Regexp.
func (p *pattern) SubexpNames() []string { return p.compiled().SubexpNames() }

// SubexpIndex is that of regexp.Regexp.
func (p *pattern) SubexpIndex(name string) int { return p.compiled().SubexpIndex(name) }

// FindStringIndex is that of regexp.Regexp.
func (p *pattern) FindStringIndex(s string) []int { return p.compiled().FindStringIndex(s) }

// ReplaceAllString is that of regexp.Regexp.
func (p *pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
