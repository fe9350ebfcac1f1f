package growing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangrun/gangrun/internal/safefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for anything. A test that waits longer fails.
const limit = time.Minute

// add appends text to a file.
func add(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// polled returns a Watch without inotify, as if no inotify instance were left or the files were on a network file
// system.
func polled() *Watch {
	w := &Watch{wake: make(chan struct{}, 1), poll: time.NewTicker(PollEvery)}
	w.Touch()
	return w
}

// until reads a file until the data that it has read contains want.
func until(t *testing.T, w *Watch, r *Reader, f *File, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var got strings.Builder
	for got.String() != want {
		changes, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v after %q, want %q", err, got.String(), want)
		}
		if !changes.Has(f.Path()) {
			continue
		}
		if err := r.More(ctx, f, changes.All, func(piece []byte) { got.Write(piece) }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGrowing follows a file that does not exist at first, then grows, and is replaced by a new file. It does so with
// inotify and without.
func TestGrowing(t *testing.T) {
	for name, watch := range map[string]func() *Watch{"notified": NewWatch, "polled": polled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "logs")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			w := watch()
			defer w.Close()
			w.Add(dir)
			path := filepath.Join(dir, "log")
			var r Reader
			f := NewFile(path, 0)
			defer r.Close(f)
			until(t, w, &r, f, "")
			add(t, path, "one\n")
			until(t, w, &r, f, "one\n")
			kept := f.file
			add(t, path, "two\n")
			until(t, w, &r, f, "two\n")
			if kept == nil || f.file != kept {
				t.Error("the file was opened again")
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			w.Add(dir)
			add(t, path, "anew\n")
			until(t, w, &r, f, "anew\n")
			add(t, path, "more\n")
			until(t, w, &r, f, "more\n")
		})
	}
}

// TestChanges checks that inotify reports the file that has changed, before the next poll.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	add(t, one, "")
	w := NewWatch()
	defer w.Close()
	w.Add(dir)
	w.poll.Stop()
	if changes, err := w.Next(t.Context()); err != nil || !changes.Has(one) || !changes.Has(other) {
		t.Errorf("first %+v, %v", changes, err)
	}
	add(t, one, "x")
	if changes, err := w.Next(t.Context()); err != nil || !changes.Has(one) || changes.Has(other) || changes.All {
		t.Errorf("then %+v, %v", changes, err)
	}
	over := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := w.Next(ctx); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
}

// TestManyFiles checks that at most maxKept descriptors stay open, and that every file is read.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	var r Reader
	var files []*File
	for i := range maxKept + 10 {
		files = append(files, NewFile(filepath.Join(dir, string(rune('a'+i%26))+strings.Repeat("x", i/26)), 0))
	}
	for round := range 2 {
		read := 0
		for _, f := range files {
			add(t, f.Path(), "x")
			if err := r.More(t.Context(), f, round > 0, func(piece []byte) { read += len(piece) }); err != nil {
				t.Fatal(err)
			}
		}
		if read != len(files) || r.kept != maxKept {
			t.Errorf("round %d: %d bytes of %d, %d files are open", round, read, len(files), r.kept)
		}
	}
	for _, f := range files {
		r.Close(f)
	}
	if r.kept != 0 {
		t.Errorf("%d files are open", r.kept)
	}
}

// TestNoFile checks that an error about a path that is no file is reported once.
func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zero")
	if err := os.Symlink("/dev/zero", path); err != nil {
		t.Fatal(err)
	}
	var r Reader
	f := NewFile(path, 0)
	more := func() error { return r.More(t.Context(), f, true, func([]byte) { t.Error("it was read") }) }
	if err := more(); !errors.As(err, new(*safefile.KindError)) {
		t.Errorf("error %v", err)
	}
	if err := more(); err != nil {
		t.Errorf("again: %v", err)
	}
}
