package probe

import (
	"regexp"
	"sync"
)

// pattern returns a function that compiles a regular expression when it is called first. Most
// processes of gangrun never need one.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
