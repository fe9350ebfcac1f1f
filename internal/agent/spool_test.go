package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/bridge"
)

// Who ends without a controller keeps its directory for what ranks have printed, and
// for nothing else.
func TestSpooled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), bridge.SpoolName)
	if spooled(dir) {
		t.Error("there is no spool")
	}
	path := filepath.Join(dir, "run", "1", "rank-0.out")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"": false, "step 1\n": true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := spooled(dir); got != want {
			t.Errorf("of a rank that has printed %q: got %v, want %v", text, got, want)
		}
	}
}
