package job

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxPattern is the largest size of a user's progress pattern, in bytes. The size is limited because every host
// compiles the pattern.
const maxPattern = 4 << 10

// ProgressGroups returns the names that groups of a progress pattern may have.
func ProgressGroups() []string { return []string{"step", "total", "epoch", "loss"} }

// CompileProgress compiles a user's progress pattern: a regular expression with a group named step or
// epoch, and perhaps total and loss. The error quotes the pattern and says what is wrong with it.
func CompileProgress(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("progress pattern %.40q... has %d bytes, but may have %d", pattern, len(pattern), maxPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("progress pattern %q is no regular expression: %w", pattern, err)
	}
	names := re.SubexpNames()
	for i, name := range names {
		switch {
		case name == "":
		case !slices.Contains(ProgressGroups(), name):
			return nil, fmt.Errorf("progress pattern %q has a group named %q, but a group may only be named %s", pattern, name, strings.Join(ProgressGroups(), ", "))
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("progress pattern %q has two groups named %q", pattern, name)
		}
	}
	if !slices.Contains(names, "step") && !slices.Contains(names, "epoch") {
		return nil, fmt.Errorf(`progress pattern %q has no group named step or epoch, as in step (?P<step>\d+)`, pattern)
	}
	return re, nil
}
