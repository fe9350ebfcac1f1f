package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestNewestBut checks that a checkpoint that was there before the run is no checkpoint of the run until it is
// written again.
func TestNewestBut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("weights and all that"), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newest := func(before Seen) string {
		t.Helper()
		found, _, err := NewestBut(t.Context(), dir, before, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found.Path
	}
	old := write("ckpt-100.bin", time.Hour)
	before, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := newest(nil); got != old {
		t.Errorf("newest of all is %q, want %q", got, old)
	}
	if got := newest(before); got != "" {
		t.Errorf("newest of this run is %q before it has written any", got)
	}
	own := write("ckpt-20.bin", time.Minute)
	if got := newest(before); got != own {
		t.Errorf("newest of this run is %q, want %q", got, own)
	}
	if write("ckpt-100.bin", 0); newest(before) != old {
		t.Errorf("the file was written anew and is not taken")
	}
}

func TestLookAtNothing(t *testing.T) {
	seen, err := Look(filepath.Join(t.TempDir(), "missing"))
	if err != nil || len(seen) != 0 {
		t.Errorf("got %v, %v, want nothing", seen, err)
	}
}
