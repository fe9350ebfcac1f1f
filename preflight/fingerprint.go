package preflight

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// mark is what tells a file from a changed one without reading it.
type mark struct {
	Bytes int64     `json:"bytes"`
	Time  time.Time `json:"time"`
}

// prints are the marks of a directory's files, by their path in it, and of its
// directories, whose marks are zero.
type prints map[string]mark

// fingerprint takes the prints of a directory on this machine: none when there
// is none, or when dir is empty.
func fingerprint(dir string) prints {
	if dir == "" {
		return nil
	}
	return printsOf(os.DirFS(dir))
}

// printsOf takes the prints of everything that can be read in fsys.
func printsOf(fsys fs.FS) prints {
	all := make(prints)
	// What cannot be looked at is left out, before and after alike.
	_ = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return nil
		}
		if entry.IsDir() {
			all[name] = mark{}
		} else if info, err := entry.Info(); err == nil {
			all[name] = mark{info.Size(), info.ModTime()}
		}
		return nil
	})
	return all
}

// changes names what is new, gone or changed in after, sorted; what is in a
// new or vanished directory is told by the directory alone.
func (before prints) changes(after prints) []string {
	var changed []string
	note := func(name string, in prints) {
		if parent := path.Dir(name); parent != "." {
			if _, ok := in[parent]; !ok {
				return
			}
		}
		changed = append(changed, name)
	}
	for name, m := range after {
		if old, ok := before[name]; !ok || old.Bytes != m.Bytes || !old.Time.Equal(m.Time) {
			note(name, before)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			note(name, after)
		}
	}
	slices.Sort(changed)
	return changed
}
