package stdin

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// all returns what an attempt reads, up to the end.
func (in *Input) all(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for buffer := make([]byte, 5); ; {
		n, err := in.read(t.Context(), int64(text.Len()), buffer)
		text.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestInputFile checks that each attempt reads a file from the offset that it had when gangrun was started.
func TestInputFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte("the first line\nand another one"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(4, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	in := New(file, 0)
	for range 3 {
		if have := in.all(t); have != "first line\nand another one" {
			t.Errorf("read %q", have)
		}
	}
	if in.full(1 << 20) {
		t.Error("a file is never full")
	}
}

// TestInputPipe checks that every attempt first gets what was kept of a pipe, and then what comes later.
func TestInputPipe(t *testing.T) {
	r, w := pipe(t)
	in := New(r, 100)
	defer in.Close()
	write := func(text string) {
		t.Helper()
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("some words")
	buffer := make([]byte, 4)
	if n, err := in.read(t.Context(), 0, buffer); n != 4 || err != nil { // a trial that reads no more
		t.Fatal(n, err)
	}
	write(" and more")
	_ = w.Close()
	for range 3 {
		if have := in.all(t); have != "some words and more" {
			t.Errorf("read %q", have)
		}
	}
	if in.lost {
		t.Error("all of it was kept")
	}
}

// TestInputBound checks that input is not kept beyond the limit. A trial must not read such input. When an attempt has
// read it, later attempts cannot get all input.
func TestInputBound(t *testing.T) {
	r, w := pipe(t)
	in := New(r, 10)
	defer in.Close()
	if _, err := w.WriteString("0123456789abcde"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	buffer := make([]byte, 5)
	for offset := int64(0); offset < 10; offset += 5 {
		if in.full(len(buffer)) {
			t.Fatalf("full after %d bytes", offset)
		}
		if n, err := in.read(t.Context(), offset, buffer); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	if !in.full(len(buffer)) || in.has() != 10 {
		t.Fatalf("it is not full, and has %d bytes", in.has())
	}
	if have := in.all(t); have != "0123456789abcde" {
		t.Errorf("the attempt after the trial read %q", have)
	}
	if !in.lost || in.stuck == nil {
		t.Error("the next attempt is not told that it lacks something")
	}
	if have := in.all(t); have != "" {
		t.Errorf("the next attempt read %q", have)
	}
}

// TestInputNothingKept checks that a trial reads at most one piece if nothing can be kept, and that the gang gets this
// piece again.
func TestInputNothingKept(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	r, w := pipe(t)
	in := New(r, 100)
	defer in.Close()
	if _, err := w.WriteString("0123456789"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	buffer := make([]byte, 5)
	if n, err := in.read(t.Context(), 0, buffer); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if !in.full(5) || in.has() != 5 {
		t.Errorf("full: %v; it has %d bytes", in.full(5), in.has())
	}
	if have := in.all(t); have != "0123456789" {
		t.Errorf("the gang read %q", have)
	}
}
