//go:build soak

package lease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakLeases lets two users start 20 gangs at the same time on 2 hosts of 8 GPUs, COUNT times. In every
// second run, it kills some of them. SEED repeats a run, as far as the times can be repeated.
func TestSoakLeases(t *testing.T) {
	needRoot(t)
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 200)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	for n := range count {
		t.Run(fmt.Sprintf("run%d", n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, n))
			c := crowd{gangs: 20, keep: 50 * time.Millisecond, uids: []int{nobody, other}}
			if n%2 == 1 {
				c.kills = 1 + random.IntN(10)
			}
			c.run(t, random)
		})
	}
}
