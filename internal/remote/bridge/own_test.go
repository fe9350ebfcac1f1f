package bridge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFix checks the hints about files that are in the way of an agent's directory. They must say who can remove the
// files.
func TestFix(t *testing.T) {
	dir := t.TempDir()
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	taken := errors.Join(own(file), own(open))
	me := fmt.Sprintf("user %d", os.Getuid())
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"in the way":  {fmt.Errorf("no directory: %w", taken), []string{"remove one of these", file + " (only " + me, open + " (only " + me}},
		"somebody's":  {errors.Join(&takenError{"/tmp/gangrun-7", 0o40700, 1001}, unix.ENOSPC), []string{"/tmp/gangrun-7 (only user 1001 or root can)"}},
		"root's":      {&takenError{"/tmp/gangrun-7", 0o40700, 0}, []string{"/tmp/gangrun-7 (only user 0 can)"}},
		"full":        {fmt.Errorf("no directory: %w", errors.Join(&os.PathError{Op: "mkdir", Path: "/tmp/x", Err: unix.ENOSPC})), []string{"free space", "/var/tmp"}},
		"other words": {errors.New("no"), nil},
	} {
		got := fix(test.err)
		if (got == "") != (test.want == nil) {
			t.Errorf("%s: %q", name, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q has no %q", name, got, want)
			}
		}
	}
	if err := own(dir); err == nil {
		t.Errorf("%s is open to others and was taken", dir)
	}
	if err := os.Chmod(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := own(open); err != nil {
		t.Error(err)
	}
}
