//go:build soak

package topology

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/testseed"
)

// TestSoakPlace compares COUNT random cases, at least 10,000 by default, with the brute force, and counts how they
// compare with NVIDIA's policy. SEED repeats them.
func TestSoakPlace(t *testing.T) {
	seed, count := testseed.Number(t, "SEED", uint64(time.Now().UnixNano())), testseed.Number(t, "COUNT", 12000)
	t.Logf("SEED=%d COUNT=%d", seed, count)
	placed, clusters := 0, 0
	var beside rival
	for n := range count {
		want, inventory, not := random(rand.New(rand.NewPCG(seed, n)))
		if len(inventory.Hosts) > 1 {
			clusters++
		}
		ok := t.Run(strconv.FormatUint(n, 10), func(t *testing.T) {
			if c, ok := check(t, want, inventory, not); ok {
				placed++
				beside.hold(t, want, inventory, not, c)
			}
		})
		if !ok {
			t.Fatalf("SEED=%d case %d: %+v not %+v", seed, n, want, not)
		}
	}
	t.Logf("%d cases, %d of them clusters; %d placed, the others rightly not", count, clusters, placed)
	t.Log(&beside)
}
