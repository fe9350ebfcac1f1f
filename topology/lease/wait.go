package lease

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// jitter returns a random part of d.
func jitter(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }

// watch is a subscription to the changes of a host: GPUs that are released, and gangs that
// stop waiting. A Turn starts it before Try and waits on it after Try, so that it misses no
// change in between.
//
// The kernel reports every file of the directory that is closed after it was open for
// writing, also at the end of a process. It reports no file that was only read. The report
// comes a moment before the lock is released, and the number of subscriptions is limited.
// So wait also returns from time to time without a change.
type watch struct {
	space  *Space
	events *os.File // of inotify, nil if there is none
}

// watch starts a subscription.
func (s *Space) watch() *watch {
	w := &watch{space: s}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return w // no inotify: wait then only returns from time to time
	}
	if _, err := unix.InotifyAddWatch(fd, s.dir, unix.IN_CLOSE_WRITE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return w
	}
	w.events = os.NewFile(uintptr(fd), "inotify")
	return w
}

func (w *watch) close() error {
	if w.events == nil {
		return nil
	}
	return w.events.Close()
}

// wait returns when something has changed since watch was called or the last wait returned,
// at the latest after one and a half times repoll. It returns an error only when ctx is
// done. It waits some random milliseconds more, so that not all waiting gangs try at the
// same time. Only one call may run at a time.
func (w *watch) wait(ctx context.Context) error {
	limit := w.space.repoll/2 + jitter(w.space.repoll)
	if w.events == nil {
		return sleep(ctx, min(limit, 100*time.Millisecond+jitter(200*time.Millisecond)))
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w.events.SetReadDeadline(time.Time{})
	done := make(chan struct{})
	stop := context.AfterFunc(timed, func() {
		defer close(done)
		w.events.SetReadDeadline(time.Unix(1, 0))
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buffer)
		if err != nil {
			<-timed.Done() // the deadline has passed, or reading fails: no report of a change
			break
		}
		if ours(buffer[:n], filepath.Base(w.space.path(kindOrder, ""))) {
			break
		}
	}
	if !stop() {
		<-done
	}
	return sleep(ctx, 2*time.Millisecond+jitter(15*time.Millisecond))
}

// ours reports whether one of the inotify events is about a file of the host with this order
// file, or means that events were lost.
func ours(events []byte, order string) bool {
	host := strings.TrimSuffix(order, kindOrder)
	for len(events) >= unix.SizeofInotifyEvent {
		mask, n := binary.NativeEndian.Uint32(events[4:]), int(binary.NativeEndian.Uint32(events[12:]))
		name := events[unix.SizeofInotifyEvent:][:n]
		events = events[unix.SizeofInotifyEvent+n:]
		name, _, _ = bytes.Cut(name, []byte{0})
		if mask&unix.IN_Q_OVERFLOW != 0 || strings.HasPrefix(string(name), host) && string(name) != order {
			return true
		}
	}
	return false
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
