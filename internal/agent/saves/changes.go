package saves

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// maxWatched limits the directories whose changes the kernel reports. These are the checkpoint directory and the newest
// directories below it. Changes in other directories are found by the next look.
const maxWatched = 64

// changes reports that something in a directory has changed, if the kernel reports that.
type changes struct {
	noticed chan time.Time // the time of the first change that nobody has received yet
	watcher *fsnotify.Watcher
	over    chan struct{} // closed when gather has ended

	mu    sync.Mutex
	added bool // watch has added the directory
}

// newChanges returns a changes that has no directory yet.
func newChanges() *changes {
	c := &changes{noticed: make(chan time.Time, 1), over: make(chan struct{})}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return c // no instance of inotify is left, so only looks find changes
	}
	c.watcher = watcher
	go func() { defer close(c.over); c.gather() }()
	return c
}

// work reports whether the kernel reports the changes that are made on this host.
func (c *changes) work() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.added
}

// watch begins to report changes in a directory, unless it does so already. If the file system is frozen, watch may
// block.
func (c *changes) watch(dir string) {
	if c.watcher == nil || c.work() || c.watcher.Add(filepath.Clean(dir)) != nil {
		return
	}
	c.mu.Lock()
	c.added = true
	c.mu.Unlock()
}

// close ends the reports. If the file system does not answer, close waits for one second at most.
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

// gather receives the kernel's events. It adds the directories that are made meanwhile, because checkpoints are being
// written to them.
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
		case _, open := <-c.watcher.Errors: // mostly, the kernel reports here that events were lost
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
