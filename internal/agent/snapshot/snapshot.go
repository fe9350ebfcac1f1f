// Package snapshot records the state of the files in some directories, and finds out later which files have
// changed.
package snapshot

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
)

// mostFiles limits how many files and directories are looked at.
const mostFiles = 20_000

// mark has values that change when the content of a file changes. The mark of a directory is zero, because each file in
// the directory has its own mark.
type mark struct {
	size, changed int64  // bytes; status change time, in nanoseconds
	inode         uint64 // a file that replaces another file has another inode
}

// Snapshot is the state of all files in some directories. The zero value has no files.
type Snapshot struct {
	// Partial is true if the Snapshot lacks some files, because there are too many, or because they cannot be
	// read.
	Partial bool
	marks   map[string]mark // by path
}

// resolved returns a path without symbolic links. If the path does not exist, resolved returns the path itself.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// Take returns the state of everything below the directories in dirs. It leaves out everything below the directories in
// excluded. It does not follow symbolic links below dirs.
func Take(dirs, excluded []string) Snapshot {
	s := Snapshot{marks: map[string]mark{}}
	var skipped []string
	for _, dir := range excluded {
		skipped = append(skipped, resolved(dir))
	}
	for _, dir := range dirs {
		dir = resolved(dir)
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				s.Partial = true
				return nil
			case err != nil || path == dir:
				return nil
			case e.IsDir() && slices.Contains(skipped, path):
				return fs.SkipDir
			case len(s.marks) == mostFiles:
				s.Partial = true
				return fs.SkipAll
			case e.IsDir():
				s.marks[path] = mark{}
				return nil
			}
			if info, err := e.Info(); err == nil {
				if stat, ok := info.Sys().(*syscall.Stat_t); ok {
					s.marks[path] = mark{stat.Size, stat.Ctim.Nano(), stat.Ino}
				}
			}
			return nil
		})
	}
	return s
}

// Changes compares s with a later Snapshot. It returns, in order, the paths that are new, gone or changed in
// the later Snapshot. If a directory is new or gone, Changes returns only the path of the directory, and no
// paths below it.
func (s Snapshot) Changes(later Snapshot) []string {
	changed := map[string]bool{}
	for path, now := range later.marks {
		if old, ok := s.marks[path]; !ok || old != now {
			changed[path] = true
		}
	}
	for path := range s.marks {
		if _, ok := later.marks[path]; !ok {
			changed[path] = true
		}
	}
	var named []string
	for path := range changed {
		if !changed[filepath.Dir(path)] {
			named = append(named, path)
		}
	}
	slices.Sort(named)
	return named
}

// Has reports whether a path is in the snapshot.
func (s Snapshot) Has(path string) bool {
	_, ok := s.marks[path]
	return ok
}
