package openmpi

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/tempfiles"
	"github.com/gangrun/gangrun/internal/environ"
)

// directories has the directories of Open MPI's own files.
type directories struct {
	tmp, shm string
	link     string // a link to this program; empty until it is needed
}

// makeDirectories makes directories that are removed at the end of the gang.
func makeDirectories(g *gang.Gang) (d directories, err error) {
	pattern := tempfiles.Prefix(os.Getpid()) + "*"
	var errs []error
	for _, dir := range append([]string{cmp.Or(environ.Lookup(g.Env, "TMPDIR"), os.TempDir())}, tempfiles.Fallbacks...) {
		if d.tmp, err = os.MkdirTemp(dir, pattern); err == nil {
			if err = tryWrite(d.tmp); err == nil {
				break
			}
			_ = os.Remove(d.tmp)
			d.tmp = ""
		}
		errs = append(errs, err)
	}
	if d.tmp == "" {
		return d, errors.Join(errs...)
	}
	if d.shm, err = os.MkdirTemp(tempfiles.SharedDir, pattern); err != nil {
		d.shm = d.tmp // slower, but always available
	}
	return d, nil
}

// tryWrite returns an error if Open MPI's daemon cannot write its files to dir. The daemon would fail without giving a
// reason.
func tryWrite(dir string) error {
	path := filepath.Join(dir, "room")
	defer os.Remove(path)
	return os.WriteFile(path, make([]byte, 256<<10), 0o600)
}

func (d *directories) remove() {
	for _, dir := range []string{d.tmp, d.shm} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	if d.link != "" {
		tempfiles.RemoveLinks(os.Getpid())
	}
}
