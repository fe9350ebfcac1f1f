//go:build soak

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/testhosts"
)

// TestSoakHealth measures equal hosts 20 times, and no host may be named. It then gives one host a slow network line,
// 20 times, each time another host. This host must be named.
func TestSoakHealth(t *testing.T) {
	b := hostsBed{testhosts.Up(t, 4), t}
	shared := filepath.Join(b.Shared(), "checkpoints")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	const rounds = 20
	quiet, named := 0, 0
	for i := range rounds {
		c, shown := b.measure(shared, "h1 h2 h3 h4")
		if len(c.Preflight) == 0 {
			quiet++
		} else {
			t.Errorf("equal hosts: %+v\n%s", c.Preflight, shown)
		}
		slow := b.Host(i%4 + 1)
		if err := slow.Rate("100mbit"); err != nil {
			t.Fatal(err)
		}
		c, shown = b.measure(shared, "h1 h2 h3 h4")
		if c.namesLink(fmt.Sprintf("h%d", i%4+1)) {
			named++
		} else {
			t.Errorf("the line of h%d is slow: %+v\n%s", i%4+1, c.Preflight, shown)
		}
		if err := slow.Rate(""); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("of %d measurements each: none named %d times, the right host named %d times", rounds, quiet, named)
}
