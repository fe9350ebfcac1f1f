package sshconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/safefile"
)

func TestReadSetting(t *testing.T) {
	dir := t.TempDir()
	file, none, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "none"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, []byte("Port 22\n"), 0o600), os.Symlink(os.DevNull, none), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{file: "Port 22\n", none: "", os.DevNull: ""} {
		if text, err := ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "nosuch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := ReadFile(fifo); !errors.As(err, new(*safefile.KindError)) { // and ReadFile does not wait
		t.Errorf("error %v", err)
	}
}
