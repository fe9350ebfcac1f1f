package journal

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

// pollEvery is how often a followed file is checked in case the kernel reports no change. The kernel reports none on
// network file systems, or if inotify is used up.
const pollEvery = 200 * time.Millisecond

// Follow calls emit for every event of the journal at path, beginning at offset, in bytes. It
// also emits events that are appended later, until it has emitted the run's last event
// (job.KindEnded) or ctx is done. Follow skips lines that cannot be read, and waits until an
// unfinished line is complete. It does not check whether the writer of the journal still
// exists. Follow returns the offset after the last line that it has read, so that a later
// Follow can begin there. If ctx was done first, the error is that of ctx.
func Follow(ctx context.Context, path string, offset int64, emit func(job.Event)) (int64, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return follow(ctx, path, offset, emit, nil)
	}
	defer watcher.Close()
	if err := watcher.Add(path); err != nil {
		return follow(ctx, path, offset, emit, nil)
	}
	return follow(ctx, path, offset, emit, watcher)
}

func follow(ctx context.Context, path string, offset int64, emit func(job.Event), watcher *fsnotify.Watcher) (int64, error) {
	file, err := safefile.Open(path)
	if err != nil {
		return offset, fmt.Errorf("cannot follow the journal: %w", err)
	}
	defer file.Close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var changes <-chan fsnotify.Event
	var troubles <-chan error
	if watcher != nil {
		changes, troubles = watcher.Events, watcher.Errors
	}
	for {
		size, gone := look(file) // before the file is read: its content at the time of its removal is still emitted
		ended, err := catchUp(ctx, file, size, &offset, emit)
		if err != nil {
			return offset, fmt.Errorf("cannot follow the journal: %w", err)
		}
		if ended {
			return offset, nil
		}
		if gone {
			return offset, fmt.Errorf("cannot follow the journal: %w", &fs.PathError{Op: "follow", Path: path, Err: fs.ErrNotExist})
		}
		var open bool
		select {
		case <-ctx.Done():
			return offset, ctx.Err()
		case <-tick.C:
		case _, open = <-changes:
			if !open {
				changes = nil
			}
		case _, open = <-troubles:
			if !open {
				troubles = nil
			}
		}
	}
}

// look returns the size of the file, and whether it was removed after it was opened.
func look(file *os.File) (size int64, gone bool) {
	info, err := file.Stat()
	if err != nil {
		return 0, true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info.Size(), ok && stat.Nlink == 0
}

// catchUp emits the whole lines after *offset, and moves *offset behind them. It reports whether the last of them ends
// the run. It reads only up to size. A writer may remove the end of a truncated line, and write other text in its
// place. catchUp must not join that end to the other text.
func catchUp(ctx context.Context, file *os.File, size int64, offset *int64, emit func(job.Event)) (ended bool, err error) {
	from := *offset
	lines := newLines(io.NewSectionReader(file, from, max(0, size-from)))
	for ctx.Err() == nil {
		line, whole, err := lines.next()
		if err == io.EOF || err == nil && !whole {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		*offset = from + lines.read
		if e, ok := parse(line); ok {
			emit(e)
			if e.Kind == job.KindEnded {
				return true, nil
			}
		}
	}
	return false, nil
}
