package pathfact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/job"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// TestInputChanged changes a file in a directory. The time of the directory does not change.
func TestInputChanged(t *testing.T) {
	dir := t.TempDir()
	file := agenttest.WriteFile(t, dir+"/data", "12345", 0o644)
	before := Input(dir)
	if info, err := os.Stat(file); err != nil || before.Changed.Before(info.ModTime()) {
		t.Errorf("changed %s, before its file: %v", before.Changed, err)
	}
	later := before.Changed.Add(time.Hour)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]time.Time{dir: later, file: later, dir + "/absent": {}} {
		got := Input(path)
		if !got.Changed.Equal(want) {
			t.Errorf("%s: changed %s, want %s", path, got.Changed, want)
		}
		if got.Changed = (time.Time{}); got != Readable(path) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestReadable(t *testing.T) {
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/data", "12345", 0o644)
	agenttest.WriteFile(t, dir+"/none", "", 0o644)
	agenttest.WriteFile(t, dir+"/full/x", "", 0o644)
	if err := errors.Join(os.Mkdir(dir+"/bare", 0o755), unix.Mkfifo(dir+"/fifo", 0o644), os.Symlink("loop", dir+"/loop"),
		os.Symlink("nowhere", dir+"/dangling"), os.Symlink("data", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]job.PathFact{
		"data":     {Bytes: 5},
		"link":     {Bytes: 5},
		"none":     {Empty: true},
		"full":     {Dir: true},
		"bare":     {Dir: true, Empty: true},
		"fifo":     {}, // the agent must not wait for a writer
		"absent":   {Kind: job.ErrorMissing, Error: "no such file or directory"},
		"dangling": {Kind: job.ErrorMissing, Error: "no such file or directory"},
		"data/x":   {Kind: job.ErrorMissing, Error: "not a directory"},
		"loop":     {Kind: job.ErrorIO, Error: "too many levels of symbolic links"},
	} {
		got := Readable(filepath.Join(dir, name))
		want.Path = filepath.Join(dir, name)
		if got.Dir {
			got.Bytes = 0 // the size depends on the file system
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if got := Readable("/proc/self/status"); got.Empty || got.Kind != job.ErrorNone {
		t.Errorf("a file of /proc with bytes and no size: got %+v", got)
	}
	if got := Readable("/proc/self/mem"); got.Kind != job.ErrorIO || got.Error == "" || got.Empty {
		t.Errorf("a file whose first byte cannot be read: got %+v", got)
	}
}

func TestErrorKind(t *testing.T) {
	for err, want := range map[error]job.ErrorKind{
		nil: job.ErrorNone, unix.ENOENT: job.ErrorMissing, unix.ENOTDIR: job.ErrorMissing, unix.EACCES: job.ErrorPermission, unix.EPERM: job.ErrorPermission,
		unix.EROFS: job.ErrorReadOnly, unix.ENOSPC: job.ErrorFull, unix.EDQUOT: job.ErrorFull, unix.EISDIR: job.ErrorKindOf, unix.EIO: job.ErrorIO,
		unix.ESTALE: job.ErrorIO, context.Canceled: job.ErrorIO,
	} {
		wrapped := err
		if err != nil {
			wrapped = &fs.PathError{Op: "open", Path: "/x", Err: err}
		}
		if got := Kind(wrapped); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
		if err != nil && Reason(wrapped) != err.Error() && !errors.Is(err, context.Canceled) {
			t.Errorf("%v: the reason is %q", err, Reason(wrapped))
		}
	}
}

func TestHashFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "short": "abc", "long": strings.Repeat("0123456789", 60_000)} {
		if got, err := Hash(t.Context(), agenttest.WriteFile(t, dir+"/"+name, text, 0o644)); err != nil || got != sum(text) {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, sum(text))
		}
	}
	if got, err := Hash(t.Context(), dir+"/absent"); got != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %q, %v", got, err)
	}
	if got, err := Hash(t.Context(), dir); got != "" || !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Hash(ctx, "/dev/zero"); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: got %q, %v", got, err)
	}
}
