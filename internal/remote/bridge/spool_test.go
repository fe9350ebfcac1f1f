package bridge

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpooled checks that an agent without a controller keeps its directory only if its ranks have printed something.
func TestSpooled(t *testing.T) {
	dir := t.TempDir()
	if Spooled(dir) {
		t.Error("there is no spool")
	}
	path := filepath.Join(dir, SpoolName, "run", "1", "rank-0.out")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"": false, "step 1\n": true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Spooled(dir); got != want {
			t.Errorf("of a rank that has printed %q: got %v, want %v", text, got, want)
		}
	}
}
