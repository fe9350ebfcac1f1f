package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kept", "grown", "gone", "own/log", "sub/kept", "removed/x"} {
		write(name, "1")
	}
	before := Take([]string{dir}, []string{dir + "/own"})
	write("grown", "22")
	write("own/log", "22")
	write("fresh/a", "")
	if err := errors.Join(os.Remove(dir+"/gone"), os.RemoveAll(dir+"/removed")); err != nil {
		t.Fatal(err)
	}
	after := Take([]string{dir}, []string{dir + "/own"})
	want := []string{dir + "/fresh", dir + "/gone", dir + "/grown", dir + "/removed"}
	if got := before.Changes(after); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if before.Partial || after.Partial {
		t.Error("a snapshot of a few files is partial")
	}
	if !before.Has(dir+"/gone") || after.Has(dir+"/gone") || before.Has(dir+"/own/log") {
		t.Error("Has is wrong about a file")
	}
}

func TestTakeMissing(t *testing.T) {
	s := Take([]string{"/no/such/directory"}, nil)
	if s.Partial || len(Snapshot{}.Changes(s)) != 0 {
		t.Errorf("got %+v of a directory that does not exist", s)
	}
}
