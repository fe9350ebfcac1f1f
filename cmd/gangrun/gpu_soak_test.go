//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakGPUGangs starts 20 gangs at once, COUNT times. In three of four rounds, processes of some gangs are killed.
// SEED repeats the choices, but not the exact times.
func TestSoakGPUGangs(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 200)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	began, figures := time.Now(), &gpuFigures{kills: map[string]int{}}
	for n := range count {
		if !t.Run(fmt.Sprintf("round%d", n), func(t *testing.T) {
			random, kills := rand.New(rand.NewPCG(seed, n)), 0
			if n%4 > 0 {
				kills = 1 + random.IntN(10)
			}
			gpuGangs(t, random, 20, kills, figures)
		}) {
			t.Errorf("SEED=%d failed in round %d", seed, n)
			break
		}
	}
	t.Logf("%s; %.0f s", figures, time.Since(began).Seconds())
}
