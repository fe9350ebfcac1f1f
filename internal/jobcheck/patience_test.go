package jobcheck_test

import (
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
)

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		patience     job.Patience
		valid        bool
		island, rack time.Duration // -1 means for ever
	}{
		{"2m", true, 2 * time.Minute, 2 * time.Minute},
		{"0s", true, 0, 0},
		{"strict", true, -1, -1},
		{"island=10m", true, 10 * time.Minute, 2 * time.Minute},
		{"island=strict,rack=1h", true, -1, time.Hour},
		{"rack=1s,host=5s", true, 2 * time.Minute, time.Second},
		{"", false, 0, 0}, {"2", false, 0, 0}, {"soon", false, 0, 0}, {"-1s", false, 0, 0}, {"island=1m,1s", false, 0, 0},
		{"any=1m", false, 0, 0}, {"town=1m", false, 0, 0}, {"island=1m,island=2m", false, 0, 0}, {"island=", false, 0, 0}, {"1m,2m", false, 0, 0},
	} {
		if err := jobcheck.Patience(c.patience); (err == nil) != c.valid {
			t.Errorf("%q: %v, want valid %t", c.patience, err, c.valid)
		}
		if !c.valid {
			continue
		}
		for level, want := range map[job.Locality]time.Duration{job.LocalityIsland: c.island, job.LocalityRack: c.rack} {
			got, bounded := c.patience.For(level)
			if bounded != (want >= 0) || bounded && got != want {
				t.Errorf("%q: %s is waited for %s, %t, want %s", c.patience, level, got, bounded, want)
			}
		}
	}
}
