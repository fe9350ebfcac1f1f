package stdin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

func TestReadReady(t *testing.T) {
	r, w := pipe(t)
	buffer := make([]byte, 4)
	read := func(want string, wantErr error) {
		t.Helper()
		n, err := readReady(t.Context(), r, buffer)
		if string(buffer[:n]) != want || !errors.Is(err, wantErr) {
			t.Fatalf("got %q, %v; want %q, %v", buffer[:n], err, want, wantErr)
		}
	}
	if _, err := w.WriteString("abcdef"); err != nil {
		t.Fatal(err)
	}
	read("abcd", nil)
	read("ef", nil)
	// readReady waits for later input, and for the end.
	for _, c := range []struct {
		later func() error
		want  string
		err   error
	}{
		{func() error { _, err := w.WriteString("g"); return err }, "g", nil},
		{w.Close, "", io.EOF},
	} {
		done := make(chan error, 1)
		go func() { done <- c.later() }()
		read(c.want, c.err)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	read("", io.EOF)
}

// TestReadReadyIsCancelled checks that a wait for input ends with its attempt, and takes no input from the next
// attempt.
func TestReadReadyIsCancelled(t *testing.T) {
	r, w := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		n, err := readReady(ctx, r, make([]byte, 10))
		if n != 0 {
			err = errors.New("something was read")
		}
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if _, err := w.WriteString("next"); err != nil {
		t.Fatal(err)
	}
	if n, err := readReady(ctx, r, make([]byte, 10)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: read %d bytes, %v", n, err)
	}
	buffer := make([]byte, 10)
	if n, err := readReady(t.Context(), r, buffer); string(buffer[:n]) != "next" || err != nil {
		t.Errorf("the next one got %q, %v", buffer[:n], err)
	}
}

// TestReadReadyNonblocking checks that readReady waits for input even if another process has made the file
// non-blocking.
func TestReadReadyNonblocking(t *testing.T) {
	r, w := pipe(t)
	if err := unix.SetNonblock(int(r.Fd()), true); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.WriteString("x")
		done <- err
	}()
	buffer := make([]byte, 1)
	if n, err := readReady(t.Context(), r, buffer); n != 1 || err != nil || buffer[0] != 'x' {
		t.Errorf("got %q, %v", buffer[:n], err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestReadReadyOther(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if n, err := readReady(t.Context(), null, make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("/dev/null: got %d bytes, %v", n, err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if n, err := readReady(t.Context(), dir, make([]byte, 1)); n != 0 || !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: got %d bytes, %v", n, err)
	}
	text := bytes.Repeat([]byte("0123456789"), 5000)
	path := t.TempDir() + "/in"
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got []byte
	for buffer := make([]byte, pieceBytes); ; {
		n, err := readReady(t.Context(), file, buffer)
		got = append(got, buffer[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, text) {
		t.Errorf("a file of %d bytes: got %d, or others", len(text), len(got))
	}
}

func TestPause(t *testing.T) {
	if err := pause(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}
