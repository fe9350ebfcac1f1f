package saves

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/saves"
)

// call is a function call that only one goroutine at a time makes. It may never return, because a file system may be
// frozen.
type call[T any] struct{ result chan T }

// begin begins the call of do.
func (c *call[T]) begin(do func() T) {
	result := make(chan T, 1)
	c.result = result
	go func() { result <- do() }()
}

func (c *call[T]) pending() bool  { return c.result != nil }
func (c *call[T]) done() <-chan T { return c.result }
func (c *call[T]) end()           { c.result = nil }

// look is a look at a directory.
type look struct {
	found   []saves.Found
	free    int64 // in bytes; -1 if not known
	network bool  // the directory is on a network file system
	at      time.Time
	noticed time.Time
	took    time.Duration
	err     error
}

// lookAt looks at a directory. noticed is the time when its first change was noticed.
func lookAt(dir string, noticed time.Time) look {
	began := time.Now()
	l := look{free: -1, noticed: noticed}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		l.network = slices.Contains(networks, int64(st.Type))
		if st.Blocks > 0 {
			l.free = int64(st.Bavail) * int64(st.Frsize)
		}
	}
	l.found, l.err = checkpoint.Scan(dir)
	l.at = time.Now()
	l.took = l.at.Sub(began)
	return l
}

// networks has the types of file systems to which other hosts may write.
var networks = []int64{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC,
	unix.AFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC,
	0x0bd00bd0, // Lustre
	0x47504653, // GPFS
	0x19830326, // BeeGFS
	0x01161970, // GFS2
	0xaad7aaea, // PanFS
}

const (
	verifyLimit = 10 * time.Minute
	// restShare is how many times as long as a verification the pause after it is. So verifications take at most a
	// fifth of the time.
	restShare = 4
)

// check is the verification of one checkpoint.
type check struct {
	key     string
	parts   []saves.Found
	results []saves.Checked // nil if a part is gone
	took    time.Duration
}

// inBackground calls do on its own thread, which has the lowest priority for the CPU and for disks.
func inBackground(do func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the first thread would not end with its goroutine
			defer runtime.UnlockOSThread()
			inBackground(do)
			close(done)
			return
		}
		defer close(done)
		lowest()
		do()
	}()
	<-done
}

// verify verifies a checkpoint.
func verify(ctx context.Context, dir, key string, parts []saves.Found) check {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	c := check{key: key, parts: parts}
	for _, p := range parts {
		if p.Unfinished {
			continue
		}
		result := saves.Checked{Path: p.Path}
		l, small, err := checkpoint.Examine(limited, dir, p.Path)
		switch {
		case ctx.Err() != nil, errors.Is(err, fs.ErrNotExist):
			c.results = nil
			return c
		case errors.Is(err, context.DeadlineExceeded):
			result.Remark = fmt.Sprintf("it was not verified to its end, because that takes more than %s", verifyLimit)
		case err != nil:
			result.Why = err.Error()
		case l.Verdict == checkpoint.Good, l.Verdict == checkpoint.WeightsOnly:
			result.Format, result.Remark = l.Format, l.Why
		default:
			result.Format, result.Why, result.Small = l.Format, l.Why, small
		}
		c.results = append(c.results, result)
	}
	c.took = time.Since(began)
	return c
}

// lowest gives the calling thread the lowest priority. It does not matter if the kernel refuses that.
func lowest() {
	const (
		who      = 1 // IOPRIO_WHO_PROCESS, which is a thread
		idle     = 3 // IOPRIO_CLASS_IDLE
		class    = 13
		niceness = 19
	)
	tid := unix.Gettid()
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, niceness)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, who, uintptr(tid), idle<<class)
}
