package jobcheck

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Patience returns an error if p is not valid.
func Patience(p job.Patience) error {
	if p == job.Strict {
		return nil
	}
	seen := map[string]bool{}
	parts := strings.Split(string(p), ",")
	for _, part := range parts {
		name, text, each := strings.Cut(part, "=")
		if !each && len(parts) > 1 {
			return fmt.Errorf("patience %q wants LEVEL=TIME between commas, not %q", p, part)
		}
		if !each {
			text = part
		} else if name != string(job.LocalityIsland) && name != string(job.LocalityHost) && name != string(job.LocalityRack) {
			return fmt.Errorf("patience %q names %q, but levels to wait for are island, host and rack", p, name)
		}
		if seen[name] && each {
			return fmt.Errorf("patience %q names %s twice", p, name)
		}
		seen[name] = true
		if text == job.Strict && each {
			continue
		}
		if d, err := job.ParseDuration(text); err != nil || d < 0 {
			return fmt.Errorf("patience %q wants a duration with a unit, as in 2m, or strict, not %q", p, text)
		}
	}
	return nil
}
