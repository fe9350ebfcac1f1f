//go:build soak

package main_test

import (
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakGarbage tries COUNT random combinations of commands, job files and environments. SEED repeats them.
func TestSoakGarbage(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 1000)
	codes, slowest := map[int]int{}, time.Duration(0)
	for n := range count {
		g := newGarbage(t, seed, n)
		code, took := g.try(t)
		if code == 70 { // an internal error is rare, and should be looked at
			t.Logf("%s ended with 70: gangrun %q, environment %q, job.yaml %q", g.name, g.args, g.env, g.file)
		}
		codes[code]++
		slowest = max(slowest, took)
	}
	t.Logf("SEED=%d: %d commands ended with the codes %v; the slowest took %s", seed, count, codes, slowest.Round(time.Millisecond))
}
