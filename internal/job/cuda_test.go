package job_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"1", "1.0", 0}, {"550.54.15", "550.54.15", 0}, {"12", "12.4", -1}, {"12.10", "12.9", 1},
		{"525.60.13", "525.60.4", 1}, {"9.2", "10.0", -1}, {"", "1", -1}, {"570.86", "560.35.03", 1},
	} {
		if got := job.CompareVersions(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := job.CompareVersions(c.b, c.a); got != -c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}
