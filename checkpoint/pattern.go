package checkpoint

import (
	"regexp"
	"sync"
)

// re returns a regular expression that is compiled when it is first used. Most of gangrun's processes use none,
// and must start fast.
func re(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
