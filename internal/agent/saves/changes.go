package saves

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// maxWatched bounds the directories of which the kernel reports changes: the checkpoint directory, and the
// newest below it. Changes in others are seen by the next look.
const maxWatched = 64

// changes reports when something in a directory has changed, as far as the kernel tells.
type changes struct {
	noticed chan time.Time // holds the time of the first change that nobody has taken
	watcher *fsnotify.Watcher
	over    chan struct{} // closed when gather has ended

	mu    sync.Mutex
	added bool // the directory
}

// newChanges returns changes of no directory.
func newChanges() *changes {
	c := &changes{noticed: make(chan time.Time, 1), over: make(chan struct{})}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return c // no instance of inotify is left: looks must do
	}
	c.watcher = watcher
	go func() { defer close(c.over); c.gather() }()
	return c
}

// work reports whether the kernel reports changes of files on this host.
func (c *changes) work() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.added
}

// watch begins to report changes in a directory, unless it does already. It may block, if the file system is
// frozen.
func (c *changes) watch(dir string) {
	if c.watcher == nil || c.work() || c.watcher.Add(filepath.Clean(dir)) != nil {
		return
	}
	c.mu.Lock()
	c.added = true
	c.mu.Unlock()
}

// close ends the reports. It waits for a file system that does not answer for a second at most.
func (c *changes) close() {
	if c.watcher == nil {
		return
	}
	_ = c.watcher.Close()
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-c.over:
	case <-limit.C:
	}
}

// gather takes the kernel's events. It adds the directories that are made meanwhile: those of checkpoints that
// are being written.
func (c *changes) gather() {
	var below []string
	for {
		select {
		case e, open := <-c.watcher.Events:
			if !open {
				return
			}
			if e.Has(fsnotify.Create) {
				if info, err := os.Lstat(e.Name); err == nil && info.IsDir() && c.watcher.Add(e.Name) == nil {
					if below = append(below, e.Name); len(below) == maxWatched {
						_ = c.watcher.Remove(below[0])
						below = below[1:]
					}
				}
			}
		case _, open := <-c.watcher.Errors: // mostly because events were lost
			if !open {
				return
			}
		}
		select {
		case c.noticed <- time.Now():
		default:
		}
	}
}
