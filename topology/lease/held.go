package lease

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrLost means that a lease no longer protects its GPUs: a lock file was removed or replaced,
// so another process can take the GPU.
var ErrLost = errors.New("lease lost")

// Held is a lease on GPUs. It lasts until Release is called, or until this process and every process that has got
// its Descriptors have ended.
type Held struct {
	devices []string
	owner   Owner
	files   []*file

	stop chan struct{} // closed by Release
	done chan struct{} // closed when the lease is lost or released
	gone chan struct{} // closed when the watch has ended

	once    sync.Once
	err     error // the error of Release
	mu      sync.Mutex
	lostErr error
}

// Devices returns the UUIDs of the GPUs.
func (h *Held) Devices() []string { return slices.Clone(h.devices) }

// Descriptors returns the file descriptors of the lock files. If other processes inherit copies of these
// descriptors, the GPUs stay leased until Release is called or all copies are closed.
func (h *Held) Descriptors() []int {
	fds := make([]int, len(h.files))
	for i, f := range h.files {
		fds[i] = int(f.Fd())
	}
	return fds
}

// Owner returns the record by which other processes learn who holds the GPUs.
func (h *Held) Owner() Owner { return h.owner }

// Done returns a channel that is closed when the lease is released or lost. Held notices a loss
// within about a second. The holder must then stop using the GPUs.
func (h *Held) Done() <-chan struct{} { return h.done }

// Err returns nil as long as the lease was not lost. After that it returns an error that wraps
// ErrLost and describes what happened.
func (h *Held) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostErr
}

// Release gives the GPUs back. It must be called even if the lease was lost. It waits until the
// goroutine that checks the files has ended. A second call returns the result of the first.
func (h *Held) Release() error {
	h.once.Do(func() {
		close(h.stop)
		<-h.gone
		h.err = h.drop()
	})
	return h.err
}

// drop empties the records and releases the locks.
func (h *Held) drop() error {
	var errs []error
	for _, f := range h.files {
		errs = append(errs, f.Truncate(0), f.drop())
	}
	return errors.Join(errs...)
}

// watch starts a goroutine that checks the files at the given interval until Release is
// called.
func (h *Held) watch(every time.Duration) {
	h.stop, h.done, h.gone = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(h.gone)
		defer close(h.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
			}
			if err := h.check(); err != nil {
				h.mu.Lock()
				h.lostErr = err
				h.mu.Unlock()
				return
			}
		}
	}()
}

// check returns an error if the name of a file no longer leads to the file that this
// process has locked.
func (h *Held) check() error {
	for i, f := range h.files {
		if same, err := f.named(); err == nil && !same {
			return fmt.Errorf("%w: somebody removed or replaced %q, the file of GPU %q", ErrLost, f.path, h.devices[i])
		}
	}
	return nil
}
