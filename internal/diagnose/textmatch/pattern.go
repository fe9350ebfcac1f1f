// Package textmatch searches lines of text. It searches for regular expressions, which it compiles when they
// are first used, and for many texts in one pass.
package textmatch

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first used. gangrun has hundreds of
// patterns. A diagnosis needs only a few of them, and agents, which must start fast, need none.
type Pattern struct {
	text     string
	compiled func() *regexp.Regexp
	needs    func() *needs
	also     *Pattern // see And
}

// New returns the Pattern of the regular expression text. New does not check text; tests call Compile
// for all patterns.
func New(text string) *Pattern {
	return &Pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) }), sync.OnceValue(func() *needs { return needsOf(text) }), nil}
}

// Compile compiles the pattern. It panics if the text of the pattern is not a regular expression.
func (p *Pattern) Compile() { p.compiled() }

// String returns the text of the expression.
func (p *Pattern) String() string { return p.text }

// And returns a pattern whose MatchString reports whether a text matches both p and q, anywhere. For all other
// methods, it is p.
func (p *Pattern) And(q *Pattern) *Pattern {
	both := *p
	both.also = q
	return &both
}

// MatchString works like the method of regexp.Regexp.
func (p *Pattern) MatchString(s string) bool {
	return p.needs().in(s) && p.compiled().MatchString(s) && (p.also == nil || p.also.MatchString(s))
}

// FindStringSubmatch works like the method of regexp.Regexp.
func (p *Pattern) FindStringSubmatch(s string) []string {
	if !p.needs().in(s) {
		return nil
	}
	return p.compiled().FindStringSubmatch(s)
}

// SubexpNames works like the method of regexp.Regexp.
func (p *Pattern) SubexpNames() []string { return p.compiled().SubexpNames() }

// SubexpIndex works like the method of regexp.Regexp.
func (p *Pattern) SubexpIndex(name string) int { return p.compiled().SubexpIndex(name) }

// FindStringIndex works like the method of regexp.Regexp.
func (p *Pattern) FindStringIndex(s string) []int {
	if !p.needs().in(s) {
		return nil
	}
	return p.compiled().FindStringIndex(s)
}

// ReplaceAllString works like the method of regexp.Regexp.
func (p *Pattern) ReplaceAllString(s, by string) string {
	if !p.needs().in(s) {
		return s
	}
	return p.compiled().ReplaceAllString(s, by)
}
