package agent

import (
	"os"
	"sync"
	"testing"
)

// TestLayersTogether checks that agents that make their layer directories at the same time do not remove those of
// other agents.
func TestLayersTogether(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				dir, err := makeLayer("")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Lstat(dir.Name()); err != nil {
					t.Errorf("a layer directory was removed while it was in use: %v", err)
				}
				_ = os.Remove(dir.Name())
				_ = dir.Close()
			}
		})
	}
	all.Wait()
}
