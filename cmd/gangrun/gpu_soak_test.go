//go:build soak

package main_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSoakGPUGangs starts 20 gangs at once, COUNT times. SEED repeats it.
func TestSoakGPUGangs(t *testing.T) {
	seed, count := number(t, "SEED", uint64(time.Now().UnixNano())), number(t, "COUNT", 200)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	for n := range count {
		gpuGangs(t, rand.New(rand.NewPCG(seed, n)), 20)
		if t.Failed() {
			t.Fatalf("SEED=%d failed in round %d", seed, n)
		}
	}
}
