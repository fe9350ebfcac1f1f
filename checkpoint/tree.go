package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/checkpoint/flaw"
	"github.com/gangrun/gangrun/checkpoint/naming"
)

// member is one file of a checkpoint.
type member struct {
	name string // below the checkpoint's directory, with slashes
	size int64
	time time.Time
}

// same reports whether m and o have the same name, size and time.
func (m member) same(o member) bool {
	return m.name == o.name && m.size == o.size && m.time.Equal(o.time)
}

// tree has the files of a checkpoint, sorted by name.
type tree []member

// newest returns the time of the last change of any file.
func (t tree) newest() (at time.Time) {
	for _, m := range t {
		if m.time.After(at) {
			at = m.time
		}
	}
	return at
}

// has reports whether there is a file with that name.
func (t tree) has(name string) bool {
	_, ok := slices.BinarySearchFunc(t, name, func(m member, name string) int { return strings.Compare(m.name, name) })
	return ok
}

// bytes returns the size of all files together.
func (t tree) bytes() (sum int64) {
	for _, m := range t {
		sum += m.size
	}
	return sum
}

const (
	maxDepth   = 8       // levels of directories in a checkpoint
	maxMembers = 1 << 20 // files of a checkpoint
)

// lookAt returns the file at path, or the files below the directory at path. It follows links to files, but not
// links to directories. It leaves out hidden files other than .metadata. If there are unfinished files, or
// links to nothing, the error is a flaw, and lookAt returns all other files with it.
func lookAt(path string) (tree, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return tree{{filepath.Base(path), info.Size(), info.ModTime()}}, nil
	}
	w := walker{root: path}
	if err := w.walk("", 1); err != nil {
		return nil, err
	}
	slices.SortFunc(w.tree, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return w.tree, w.flaw
}

type walker struct {
	root string
	tree tree
	flaw error // the first flaw that was found
}

func (w *walker) walk(below string, depth int) error {
	entries, err := os.ReadDir(filepath.Join(w.root, below))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(below, e.Name())
		switch {
		case e.Name() == dcpMetadata:
		case naming.Hidden(e.Name()):
			continue
		case naming.Temporary(e.Name()):
			w.blame("it holds %s, which was not finished", name)
			continue
		}
		info, err := os.Stat(filepath.Join(w.root, name))
		if errors.Is(err, fs.ErrNotExist) {
			w.blame("%s is gone, or a link to nothing", name)
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			if depth == maxDepth {
				return fmt.Errorf("%q is nested too deeply to be a checkpoint", w.root)
			}
			if err := w.walk(name, depth+1); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if w.tree = append(w.tree, member{name, info.Size(), info.ModTime()}); len(w.tree) > maxMembers {
				return fmt.Errorf("%q has too many files to be a checkpoint", w.root)
			}
		}
	}
	return nil
}

func (w *walker) blame(format string, args ...any) {
	if w.flaw == nil {
		w.flaw = flaw.New(format, args...)
	}
}
