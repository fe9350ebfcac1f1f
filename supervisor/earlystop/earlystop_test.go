package earlystop

import (
	"slices"
	"testing"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
)

// TestKinds: the verdicts of the judge are those of the job, and each has a hint.
func TestKinds(t *testing.T) {
	var kinds []string
	for _, k := range judge.Kinds {
		kinds = append(kinds, string(k))
		if _, ok := hints[k]; !ok {
			t.Errorf("no hint for %s", k)
		}
	}
	if !slices.Equal(job.CurveKinds(), kinds) {
		t.Errorf("job.CurveKinds are %q, but judge.Kinds %q", job.CurveKinds(), kinds)
	}
}
