//go:build soak

package main_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakRandomHostFaults makes COUNT mishaps happen, one to three of them to each run. SEED repeats the choices, but
// not the exact times.
func TestSoakRandomHostFaults(t *testing.T) {
	needPython(t, "json")
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 100)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	places := make(chan struct{}, atOnce)
	var mu sync.Mutex
	happened, states, missed, restarts := map[string]int{}, map[job.State]int{}, 0, 0
	t.Run("all", func(t *testing.T) {
		for n, left := uint64(0), count; left > 0; n++ {
			random := rand.New(rand.NewPCG(seed, n))
			plan := make([]mishap, min(1+random.Uint64N(3), left))
			left -= uint64(len(plan))
			for i := range plan {
				plan[i] = mishaps[random.IntN(len(mishaps))]
			}
			t.Run(fmt.Sprintf("round%d", n), func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				readOnly := random.IntN(3 * farHosts) // most runs have no such host
				if readOnly > farHosts {
					readOnly = 0
				}
				r := startTally(t, random, tallyOptions{readOnly: readOnly, timeout: mishapTimeout, grace: mishapGrace})
				lost := 0
				for i, m := range plan {
					if !r.happen(m, random.IntN(4) == 0) {
						lost = len(plan) - i
						break
					}
				}
				state, attempts := r.conclude()
				mu.Lock()
				defer mu.Unlock()
				for _, s := range r.all {
					happened[s.name]++
				}
				missed += r.missed + lost
				states[state]++
				restarts += attempts - 1
			})
		}
	})
	t.Logf("%d mishaps, %d of them after the run's end or to what was not there: %v; runs ended as %v after %d restarts", count, missed, happened, states, restarts)
}
