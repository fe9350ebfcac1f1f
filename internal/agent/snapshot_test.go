package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/wire"
)

// TestFiles checks that new, changed and removed files are reported. If a directory is new, the files in it are not
// reported.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kept", "grown", "gone", "replaced", "own/log", "sub/kept", "sub/grown", "removed/x"} {
		write(name, "1")
	}
	if err := os.Symlink(dir, dir+".link"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir + ".link") })
	s := &server{}
	ask := func(again bool) *wire.FilesReply {
		t.Helper()
		reply, err := s.Files(t.Context(), &wire.FilesRequest{Gang: "r/0", Dirs: [][]byte{[]byte(dir + ".link")}, But: [][]byte{[]byte(dir + ".link/own")}, Again: again})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := ask(false); reply.Partly {
		t.Error("there is little to look at")
	}
	write("grown", "22")
	write("sub/grown", "22")
	write("own/log", "22")
	write("new", "")
	write("fresh/a", "")
	write("fresh/b", "")
	write("temporary", "1")
	if err := errors.Join(os.Remove(filepath.Join(dir, "gone")), os.Rename(filepath.Join(dir, "temporary"), filepath.Join(dir, "replaced")), os.RemoveAll(filepath.Join(dir, "removed"))); err != nil {
		t.Fatal(err)
	}
	reply := ask(true)
	named := func(paths [][]byte) (names []string) {
		for _, p := range paths {
			names = append(names, strings.TrimPrefix(string(p), dir+"/"))
		}
		return names
	}
	if made, want := named(reply.Made), []string{"fresh", "new"}; !slices.Equal(made, want) {
		t.Errorf("made are %q, want %q", made, want)
	}
	if changed, want := named(reply.Changed), []string{"gone", "grown", "removed", "replaced", "sub/grown"}; !slices.Equal(changed, want) {
		t.Errorf("changed are %q, want %q", changed, want)
	}
	if reply.More != 0 || reply.Partly {
		t.Errorf("%+v", reply)
	}
	// The second snapshot is the first one of the next comparison. If many files change, most of them are only
	// counted.
	for i := range mostChanged + 5 {
		write(fmt.Sprint("many", i), "")
	}
	if reply := ask(true); len(reply.Made) != mostChanged || reply.More != 5 || len(reply.Changed) > 0 {
		t.Errorf("%d made, %d more", len(reply.Made), reply.More)
	}
	if _, err := s.Files(t.Context(), &wire.FilesRequest{Gang: "other/0", Again: true}); err == nil {
		t.Error("a gang whose files were not looked at before")
	}
}
