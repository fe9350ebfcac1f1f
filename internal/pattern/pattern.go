// Package pattern has regular expressions that are compiled when they are first used. gangrun starts several
// processes on each host, and most of them never use most of the expressions.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern returns the compiled regular expression.
type Pattern func() *regexp.Regexp

// New returns a pattern. The first call of the pattern panics if text is not a regular expression.
func New(text string) Pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Match reports whether text has a match.
func (p Pattern) Match(text string) bool { return p().MatchString(text) }
