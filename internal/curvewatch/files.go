package curvewatch

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gangrun/gangrun/internal/metrics"
)

const (
	maxFiles = 32 // limits the files that are followed at the same time
	// minSearch and maxSearch limit the time between two searches. The time doubles after each search that finds
	// nothing new.
	minSearch = 2 * time.Second
	maxSearch = time.Minute
)

// files has the files with metrics that a job leaves in some directories. It reads only files that have changed since
// the first attempt began. If a file was there before, it reads only what was added.
type files struct {
	dirs  []string
	began time.Time              // when the first attempt began
	step  int64                  // the step at which the newest attempt began
	was   map[string]fs.FileInfo // the files that were there before; nil before the first search
	known map[string]*source
	next  time.Time // time of the next search
	wait  time.Duration
}

func newFiles(dirs []string, began time.Time) *files {
	return &files{dirs: dirs, began: began, known: map[string]*source{}, wait: minSearch}
}

// again prepares for the next attempt. The attempt began at the time began, at a step.
func (f *files) again(began time.Time, step int64) {
	f.step, f.next, f.wait = step, began, minSearch
	for _, s := range f.known {
		if s != nil {
			s.read, s.step = began, min(s.step, max(0, step))
		}
	}
}

// all returns the files to read now.
func (f *files) all(ctx context.Context) (all []*source) {
	if now := time.Now(); !now.Before(f.next) {
		before := len(f.known)
		f.search()
		if f.wait = min(2*f.wait, maxSearch); len(f.known) > before {
			f.wait = minSearch
		}
		f.next = now.Add(f.wait)
	}
	for path, s := range f.known {
		if s == nil {
			continue
		}
		if s.file.Format() == metrics.Output { // in spite of its name, the file has no metrics
			f.known[path] = nil
			continue
		}
		all = append(all, s)
	}
	return all
}

// coarse limits how far the times of files can be behind the clock.
const coarse = time.Second

// search looks for files.
func (f *files) search() {
	found := map[string]fs.FileInfo{}
	metrics.Walk(f.dirs, func(path string, e os.DirEntry) {
		if info, err := e.Info(); err == nil {
			found[path] = info
		}
	})
	if f.was == nil {
		f.was = map[string]fs.FileInfo{}
		for path, info := range found {
			if info.ModTime().Before(f.began.Add(-coarse)) {
				f.was[path] = info
			}
		}
	}
	following := 0
	for _, s := range f.known {
		if s != nil {
			following++
		}
	}
	for path, info := range found {
		before, old := f.was[path]
		if _, known := f.known[path]; known || old && same(before, info) || following >= maxFiles {
			continue
		}
		following++
		s := &source{name: path, file: metrics.NewFile(path), step: f.step}
		if filepath.Base(path) == metrics.StateName {
			s = f.state(path)
		} else if old && os.SameFile(before, info) {
			s.file = metrics.NewFileFrom(path, before.Size())
		}
		f.known[path] = s
	}
}

// same reports whether a file has not changed.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// state returns the source for a trainer_state.json. Each such file has the whole history of its run. So the newest
// file replaces the previous file, and only its new part counts.
func (f *files) state(path string) *source {
	s := &source{name: filepath.Join(filepath.Dir(filepath.Dir(path)), "*", metrics.StateName), file: metrics.NewFile(path), step: f.step}
	for other, before := range f.known {
		if before != nil && before.name == s.name {
			s.step, s.read = before.step, before.read
			f.known[other] = nil
		}
	}
	return s
}
