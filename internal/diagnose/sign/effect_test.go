package sign

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/job"
)

// TestEffectOf checks that a failure is recognised as the effect of an earlier sign.
func TestEffectOf(t *testing.T) {
	of := func(c job.Category, class, title, frames string, from int) *Sign {
		return &Sign{Class: class, Context: frames, Rule: &rule.Rule{Category: c}, Title: title, From: from, At: from, To: from + 1}
	}
	gpu, store := of(job.CUDAInit, "", "failed call to cuInit", "", 0), of(job.StorageError, "", "a.nc: Remote I/O error", "", 1)
	for name, c := range map[string]struct {
		later, want *Sign
	}{
		"a GPU is chosen":  {of(job.SemanticError, "IndexError", "IndexError: list index out of range", "main: use(gpus[0])", 5), gpu},
		"a label is taken": {of(job.SemanticError, "IndexError", "IndexError: list index out of range", "main: y = labels[9]", 5), nil},
		"a failed write":   {of(job.SemanticError, "forrtl severe", "forrtl: severe (38): error during write, unit 20", "", 5), store},
		"a bad subscript":  {of(job.SemanticError, "forrtl severe", "forrtl: severe (408): subscript out of range", "", 5), nil},
		"before it":        {of(job.SemanticError, "IndexError", "IndexError: list index out of range", "main: use(gpus[0])", 0), nil},
	} {
		if got := c.later.EffectOf([]*Sign{gpu, store}); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
