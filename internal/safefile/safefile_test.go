package safefile_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/safefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit limits calls that must not hang.
const limit = time.Minute

// write makes a file.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fifo makes a FIFO.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// soon calls do, which must return within limit.
func soon(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal("it hangs")
	}
}

// TestNotRegular checks that everything but regular files is refused at once, and that the error says what it is.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	link, socket := filepath.Join(dir, "zero"), filepath.Join(dir, "socket")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for path, kind := range map[string]string{
		fifo(t): "a FIFO", "/dev/zero": "a character device", link: "a character device", socket: "a socket", dir: "a directory",
	} {
		for name, open := range map[string]func() error{
			"Open":     func() error { _, err := safefile.Open(path); return err },
			"ReadFile": func() error { _, err := safefile.ReadFile(path, 10); return err },
			"to write": func() error { _, err := safefile.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); return err },
			"to make":  func() error { _, err := safefile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); return err },
		} {
			soon(t, func() {
				err := open()
				var bad *safefile.KindError
				if !errors.As(err, &bad) || !strings.Contains(err.Error(), path+`" is `+kind+", not a regular file") || bad.Hint() == "" {
					t.Errorf("%s of %s: %v", name, kind, err)
				}
			})
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path, link := write(t, filepath.Join(dir, "file"), "0123456789"), filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if text, err := safefile.ReadFile(name, 10); err != nil || string(text) != "0123456789" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		var large *safefile.SizeError
		if _, err := safefile.ReadFile(name, 9); !errors.As(err, &large) || !strings.Contains(err.Error(), "larger than 9 bytes") || large.Hint() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := safefile.ReadFile(filepath.Join(dir, "nosuch"), 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	made, err := safefile.OpenFile(filepath.Join(dir, "new"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.WriteString("x"); errors.Join(err, made.Close()) != nil {
		t.Error(err)
	}
}

// TestReadStream checks that a pipe is read to its end, even if its writer comes late or writes slowly.
func TestReadStream(t *testing.T) {
	path := fifo(t)
	waited := make(chan fs.FileMode, 1)
	wrote := make(chan error, 1)
	go func() {
		<-waited // the reader has opened the pipe by then
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, first := file.WriteString("one\n")
			_, second := file.WriteString("two\n")
			err = errors.Join(first, second, file.Close())
		}
		wrote <- err
	}()
	text, err := safefile.ReadStream(t.Context(), path, 100, func(mode fs.FileMode) {
		if safefile.Kind(mode) != "a FIFO" {
			t.Errorf("it waits for %s", safefile.Kind(mode))
		}
		waited <- mode
	})
	if err := errors.Join(err, <-wrote); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("as by a shell"); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	// The writer has closed the pipe before it is opened by this name.
	name := filepath.Join("/proc/self/fd", strconv.Itoa(int(r.Fd())))
	if text, err := safefile.ReadStream(t.Context(), name, 100, nil); err != nil || string(text) != "as by a shell" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestReadStreamBounded checks that a device without an end, or one without data, is not read for ever.
func TestReadStreamBounded(t *testing.T) {
	for _, path := range []string{"/dev/zero", write(t, filepath.Join(t.TempDir(), "file"), strings.Repeat("x", 200_000))} {
		if text, err := safefile.ReadStream(t.Context(), path, 100_000, nil); err != nil || len(text) != 100_001 {
			t.Errorf("%s: %d bytes, %v", path, len(text), err)
		}
	}
	if text, err := safefile.ReadStream(t.Context(), "/dev/null", 10, nil); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := safefile.ReadStream(t.Context(), t.TempDir(), 10, nil); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
	over := errors.New("somebody has seen enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(over) })
	soon(t, func() {
		if _, err := safefile.ReadStream(ctx, fifo(t), 10, nil); !errors.Is(err, over) {
			t.Errorf("a FIFO without a writer: %v", err)
		}
	})
}
