package lease

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrLost is the error of a lease that does not protect its GPUs any more: the file of
// one was removed or replaced, so that another process can take the GPU.
var ErrLost = errors.New("lease lost")

// Held is a lease: GPUs that this process has until Release, or until it ends.
type Held struct {
	devices []string
	owner   Owner
	files   []*file

	stop chan struct{} // closed by Release
	done chan struct{} // closed when the lease is lost or released
	gone chan struct{} // closed when the watch has ended

	once    sync.Once
	err     error // of Release
	mu      sync.Mutex
	lostErr error
}

// Devices returns the UUIDs of the GPUs.
func (h *Held) Devices() []string { return slices.Clone(h.devices) }

// Descriptors returns the file descriptors of the locked files. A process with copies of
// them holds the GPUs until Release, or until all copies are closed.
func (h *Held) Descriptors() []int {
	fds := make([]int, len(h.files))
	for i, f := range h.files {
		fds[i] = int(f.Fd())
	}
	return fds
}

// Owner returns the holder of the GPUs as other processes read it.
func (h *Held) Owner() Owner { return h.owner }

// Done is closed when the lease is lost, which is noticed within about a second,
// or released. The user of the GPUs must then stop.
func (h *Held) Done() <-chan struct{} { return h.done }

// Err returns nil until Done is closed by a loss, and then an ErrLost that says
// what happened.
func (h *Held) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostErr
}

// Release gives the GPUs back. It returns when nothing of the lease is left, also
// where it was lost before. A second call returns what the first did.
func (h *Held) Release() error {
	h.once.Do(func() {
		close(h.stop)
		<-h.gone
		h.err = h.drop()
	})
	return h.err
}

// drop empties the records and gives up the locks.
func (h *Held) drop() error {
	var errs []error
	for _, f := range h.files {
		errs = append(errs, f.Truncate(0), f.drop())
	}
	return errors.Join(errs...)
}

// watch starts looking at the files every so often, until Release waits for it.
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

// check says which file is not what others find under its name.
func (h *Held) check() error {
	for i, f := range h.files {
		if same, err := f.named(); err == nil && !same {
			return fmt.Errorf("%w: somebody removed or replaced %q, the file of GPU %q", ErrLost, f.path, h.devices[i])
		}
	}
	return nil
}
