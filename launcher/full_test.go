package launcher

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
)

// fullFile returns the path of an empty file on a file system that has no room left.
func fullFile(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		noskip.Skip(t, "only root can mount a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 4<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "full")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
