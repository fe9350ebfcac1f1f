package agent

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gangrun/gangrun/internal/wire"
)

// Bounds of a look at files.
const (
	mostFiles   = 20_000 // entries that are looked at
	mostChanged = 20     // changed files that are named
)

// fileMark tells a file from a changed one without reading it. That of a directory is
// zero: what is in it has marks of its own.
type fileMark struct {
	size, changed int64  // bytes; status change time, in nanoseconds
	inode         uint64 // a file that was replaced has another
}

// fileList is what lies in the directories of a gang.
type fileList struct {
	gang   string
	marks  map[string]fileMark // by path
	partly bool                // there were more than mostFiles
}

// Files implements wire.AgentServer.
func (s *server) Files(_ context.Context, r *wire.FilesRequest) (*wire.FilesReply, error) {
	found := list(r.Gang, wire.Strings(r.Dirs), wire.Strings(r.But))
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.listing
	s.listing = found
	if !r.Again {
		return &wire.FilesReply{Partly: found.partly}, nil
	}
	if before.gang != r.Gang {
		return nil, status.Errorf(codes.NotFound, "the files of gang %q were not looked at before", r.Gang)
	}
	reply := &wire.FilesReply{Partly: before.partly || found.partly}
	for i, path := range before.changes(found) {
		_, known := before.marks[path]
		switch {
		case i >= mostChanged:
			reply.More++
		case known:
			reply.Changed = append(reply.Changed, []byte(path))
		default:
			reply.Made = append(reply.Made, []byte(path))
		}
	}
	return reply, nil
}

// resolved returns a path without symbolic links, which are not followed below it; the path
// itself where it does not exist.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// list looks at everything in some directories but what is in some others. What cannot
// be looked at is left out.
func list(gang string, dirs, but []string) fileList {
	l := fileList{gang: gang, marks: map[string]fileMark{}}
	for i, dir := range but {
		but[i] = resolved(dir)
	}
	for _, dir := range dirs {
		dir = resolved(dir)
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				l.partly = true
				return nil
			case err != nil || path == dir:
				return nil
			case e.IsDir() && slices.Contains(but, path):
				return fs.SkipDir
			case len(l.marks) == mostFiles:
				l.partly = true
				return fs.SkipAll
			case e.IsDir():
				l.marks[path] = fileMark{}
				return nil
			}
			if info, err := e.Info(); err == nil {
				if stat, ok := info.Sys().(*syscall.Stat_t); ok {
					l.marks[path] = fileMark{stat.Size, stat.Ctim.Nano(), stat.Ino}
				}
			}
			return nil
		})
	}
	return l
}

// changes names what is new, gone or changed in after, sorted. What is in a new or
// vanished directory goes by the directory alone.
func (l fileList) changes(after fileList) []string {
	changed := map[string]bool{}
	for path, mark := range after.marks {
		if old, ok := l.marks[path]; !ok || old != mark {
			changed[path] = true
		}
	}
	for path := range l.marks {
		if _, ok := after.marks[path]; !ok {
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
