package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/safefile"
)

// TestReplaySize checks that a file that is too large to be a journal is not read.
func TestReplaySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, MaxSize+1)); err != nil {
		t.Fatal(err)
	}
	var large *safefile.SizeError
	if _, _, err := Replay(path); !errors.As(err, &large) {
		t.Errorf("got %v, want that it is too large", err)
	}
}
