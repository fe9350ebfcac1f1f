package ssh

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// TestForms checks that a program arrives unchanged in each form, and that the first form is used that the host can
// unpack.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		tools string
		want  form
	}{{"zstd gzip", formZstd}, {"gzip", formGzip}, {"", formPlain}} {
		t.Run(string(c.want), func(t *testing.T) {
			s := sshtest.New(t)
			s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
			bin := s.Path("bin")
			if err := os.Mkdir(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range strings.Fields("sh id ls wc touch mkdir chmod cat head mv rm rmdir find stat sha256sum " + c.tools) {
				path, err := exec.LookPath(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
					t.Fatal(err)
				}
			}
			s.Start("n1", "SetEnv PATH="+bin+" HOME="+s.Path("home")).Known().Named()
			p := small()
			var sent []form
			all := p.packings()
			count := func(f form, pack func() ([]byte, error)) func() ([]byte, error) {
				return func() ([]byte, error) { sent = append(sent, f); return pack() }
			}
			p.packed = &packings{zstd: count(formZstd, all.zstd), gzip: count(formGzip, all.gzip)}
			open := p.Open
			p.Open = func() (io.ReadCloser, error) { sent = append(sent, formPlain); return open() } // in the other forms, the program is packed already
			path, note := installed(t, dial(t, client(s), "n1"), p)
			if note != "" || len(sent) != 1 || sent[0] != c.want {
				t.Errorf("with %q it is sent as %q, note %q; want %s", c.tools, sent, note, c.want)
			}
			from, err := open()
			if err != nil {
				t.Fatal(err)
			}
			want, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
				t.Errorf("%d bytes are there, want %d: %v", len(got), len(want), err)
			}
		})
	}
}
