// Package journal writes and reads the journal of a run. This is a file with one job.Event on each line, as JSON.
// Events are only appended. gangrun computes everything that it reports about a run from this file.
package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
)

const (
	// MaxLine limits the length of a line, in bytes. An outcome or a placement of job.MaxRanks ranks needs about half
	// of that.
	MaxLine = 32 << 20
	// maxWaiting limits how many bytes of less important events are kept while the file cannot be written.
	maxWaiting = 4 << 20
)

// Journal writes a journal. Its methods may be called from several goroutines.
type Journal struct {
	path string
	file *os.File
	// A value on dirty asks the syncer for an fsync. The syncer ends when dirty is closed.
	dirty chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	size   int64  // size of the file, with whole lines only
	wait   []byte // lines that could not be written yet
	err    error  // the first error that cannot be repaired
	closed bool
}

// Create creates the journal of a new run. Only its owner can read the file. Create fails if
// path exists.
func Create(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create the journal: %w", err)
	}
	return start(path, file, 0, true), nil
}

// Open opens the journal of a run whose last writer has ended, to append to it. If the last
// line is truncated, Open ends that line, so that the next one can be read.
func Open(path string) (*Journal, error) {
	file, err := safefile.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the journal: %w", err), file.Close())
	}
	j := start(path, file, info.Size(), false)
	last := []byte{'\n'}
	if info.Size() > 0 {
		if _, err := file.ReadAt(last, info.Size()-1); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot open the journal: %w", err), j.Close())
		}
	}
	if last[0] != '\n' {
		j.wait = []byte{'\n'}
	}
	return j, nil
}

func start(path string, file *os.File, size int64, created bool) *Journal {
	j := &Journal{path: path, file: file, size: size, dirty: make(chan struct{}, 1), done: make(chan struct{})}
	go j.sync(created)
	return j
}

// sync forces the file to the disk whenever it is asked to. It does that for many events at a time, and does not delay
// the callers of Append. If the file is new, sync also forces its name to the disk.
func (j *Journal) sync(created bool) {
	defer close(j.done)
	for range j.dirty {
		err := j.file.Sync()
		if created && err == nil {
			err, created = syncDir(filepath.Dir(j.path)), false
		}
		if err != nil {
			j.mu.Lock()
			j.fail(err)
			j.mu.Unlock()
		}
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil // this file system does not need or does not know this
}

// Durable reports whether a Journal forces events of a kind to the disk. These are the events
// that record the start and the end of attempts, for example. Append forces them in the
// background, except for the last event, KindEnded: its Append returns when the event is on the
// disk.
func Durable(kind job.Kind) bool {
	switch kind {
	case job.KindCreated, job.KindAttached, job.KindAttempt, job.KindOutcome, job.KindCheckpoint, job.KindCause, job.KindVerdict, job.KindEnded:
		return true
	}
	return false
}

// Append writes e as one line, with one write(2). If the write fails, no part of the line stays in
// the file. The Journal keeps the line, and a later Append or Close writes it before any later
// lines. The error names the file.
func (j *Journal) Append(e job.Event) error {
	line, err := exact.Marshal(e)
	if err == nil && len(line) >= MaxLine {
		err = fmt.Errorf("it is %d bytes long, but a line may have %d", len(line), MaxLine-1)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: event %q: %w", j.path, e.Kind, err)
	}
	j.mu.Lock()
	err = j.append(append(line, '\n'), Durable(e.Kind))
	j.mu.Unlock()
	if err == nil && e.Kind == job.KindEnded {
		return j.Sync()
	}
	return err
}

func (j *Journal) append(line []byte, durable bool) error {
	if j.closed {
		return fmt.Errorf("cannot write %q: %w", j.path, os.ErrClosed)
	}
	lines := line
	if len(j.wait) > 0 {
		lines = append(j.wait, line...)
	}
	if len(lines) == 0 {
		return nil
	}
	n, err := j.file.Write(lines)
	if err != nil {
		err = fmt.Errorf("cannot write %q: %w", j.path, err)
		whole := bytes.LastIndexByte(lines[:n], '\n') + 1
		rest := lines[whole:]
		if !durable && len(line) > 0 && len(rest) > maxWaiting {
			rest = rest[:len(rest)-len(line)]
			j.fail(fmt.Errorf("events are missing: %w", err))
		}
		j.size += int64(whole)
		if n > whole && j.file.Truncate(j.size) != nil {
			// The truncated line stays as a line that cannot be read. So end the line.
			j.size += int64(n - whole)
			rest = append([]byte{'\n'}, rest...)
		}
		j.wait = rest
		return err
	}
	j.size, j.wait = j.size+int64(n), nil
	if durable {
		select {
		case j.dirty <- struct{}{}:
		default: // the syncer has already been asked
		}
	}
	return nil
}

// fail stores the first error for Close. The lock is held.
func (j *Journal) fail(err error) {
	if j.err == nil {
		j.err = fmt.Errorf("journal %q: %w", j.path, err)
	}
}

// Sync returns when all appended events are on the disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	err := j.append(nil, false)
	j.mu.Unlock()
	if err == nil {
		if err = j.file.Sync(); err != nil {
			err = fmt.Errorf("cannot force %q to the disk: %w", j.path, err)
		}
	}
	return err
}

// Close returns when every durable event is on the disk and the file is closed. Its error says
// whether events are missing in the file, and whether an fsync has failed since the journal was
// opened.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return fmt.Errorf("cannot close %q: %w", j.path, os.ErrClosed)
	}
	if len(j.wait) > 0 {
		if err := j.append(nil, true); err != nil {
			j.fail(fmt.Errorf("events are missing: %w", err))
		}
	}
	j.closed = true
	close(j.dirty)
	j.mu.Unlock()
	<-j.done
	return errors.Join(j.err, j.file.Close())
}
