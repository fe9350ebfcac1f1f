// Package textmatch searches lines of text: for regular expressions that are compiled
// when they are first used, and for many texts in one pass.
package textmatch

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first used. There are hundreds: a
// diagnosis needs only a few, and agents, which must start fast, need none.
type Pattern struct {
	text     string
	compiled func() *regexp.Regexp
}

// New returns the pattern of that text, which must be valid: tests call Compile for all.
func New(text string) *Pattern {
	return &Pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// Compile panics if the text is no regular expression.
func (p *Pattern) Compile() { p.compiled() }

// String returns the text of the expression.
func (p *Pattern) String() string { return p.text }

// MatchString is that of regexp.Regexp.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindStringSubmatch is that of regexp.Regexp.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// SubexpNames is that of regexp.Regexp.
func (p *Pattern) SubexpNames() []string { return p.compiled().SubexpNames() }

// SubexpIndex is that of regexp.Regexp.
func (p *Pattern) SubexpIndex(name string) int { return p.compiled().SubexpIndex(name) }

// FindStringIndex is that of regexp.Regexp.
func (p *Pattern) FindStringIndex(s string) []int { return p.compiled().FindStringIndex(s) }

// ReplaceAllString is that of regexp.Regexp.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
