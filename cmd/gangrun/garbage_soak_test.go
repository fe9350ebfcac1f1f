//go:build soak

package main_test

import (
	"testing"
	"time"
)

// TestSoakGarbage tries COUNT commands, job files and environments that were put together
// at random; SEED repeats them.
func TestSoakGarbage(t *testing.T) {
	seed, count := number(t, "SEED", uint64(time.Now().UnixNano())), number(t, "COUNT", 1000)
	codes, slowest := map[int]int{}, time.Duration(0)
	for n := range count {
		code, took := newGarbage(t, seed, n).try(t)
		codes[code]++
		slowest = max(slowest, took)
	}
	t.Logf("SEED=%d: %d commands ended with the codes %v; the slowest took %s", seed, count, codes, slowest.Round(time.Millisecond))
}
