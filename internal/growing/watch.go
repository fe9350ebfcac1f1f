// Package growing follows files that other processes write to: it reports when they may
// have grown, and reads what was added.
package growing

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// PollEvery is the interval at which a Watch reports every file as possibly changed. The
	// kernel does not report changes that other machines make on network file systems. It
	// reports no changes at all if the user has used up the inotify instances or watches of the
	// machine.
	PollEvery = 500 * time.Millisecond
	// pace is the shortest time between two reports of changes.
	pace = 100 * time.Millisecond
)

// Changes are the files that may have changed.
type Changes struct {
	All   bool // any file may have changed
	names map[string]bool
}

// Has reports whether the file at path may have changed.
func (c Changes) Has(path string) bool { return c.All || c.names[path] }

// Watch reports which files of some directories may have changed.
type Watch struct {
	watcher *fsnotify.Watcher // nil if none could be made; then only the poll finds changes
	wake    chan struct{}     // has a value while there are changes
	poll    *time.Ticker
	done    sync.WaitGroup

	mu      sync.Mutex
	changes Changes
	last    time.Time // when Next last returned
}

// NewWatch returns a Watch that has no directory yet. The caller must close it.
func NewWatch() *Watch {
	w := &Watch{wake: make(chan struct{}, 1), poll: time.NewTicker(PollEvery)}
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		w.watcher = watcher
		w.done.Go(w.gather)
	}
	w.Touch() // files that exist already are new to the caller
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	w.poll.Stop()
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
	w.done.Wait()
}

// Add watches the files of a directory, too. A directory that is watched already may be added again, for instance
// because it was removed and created again. If the kernel cannot watch it, its files are reported as changed at every
// PollEvery.
func (w *Watch) Add(dir string) {
	if w.watcher != nil {
		_ = w.watcher.Add(dir)
	}
}

// Touch makes the next call of Next report that any file may have changed.
func (w *Watch) Touch() { w.note(func(c *Changes) { c.All = true }) }

// Next waits until files may have changed, and returns which. If ctx ends first, the error is
// the cause of ctx.
func (w *Watch) Next(ctx context.Context) (Changes, error) {
	// A writer that writes line by line should not be read line by line.
	if rest := pace - time.Since(w.last); rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return Changes{}, context.Cause(ctx)
		}
	}
	select {
	case <-w.wake:
	case <-w.poll.C:
		w.Touch()
	case <-ctx.Done():
		return Changes{}, context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := w.changes
	w.changes, w.last = Changes{}, time.Now()
	return changes, nil
}

// gather collects the kernel's events until the watcher is closed.
func (w *Watch) gather() {
	for {
		select {
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			w.note(func(c *Changes) {
				if c.names == nil {
					c.names = map[string]bool{}
				}
				c.names[filepath.Clean(event.Name)] = true
			})
		case _, open := <-w.watcher.Errors: // mostly, the kernel reports here that events were lost
			if !open {
				return
			}
			w.Touch()
		}
	}
}

// note changes what Next will return, and wakes Next.
func (w *Watch) note(change func(*Changes)) {
	w.mu.Lock()
	change(&w.changes)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
