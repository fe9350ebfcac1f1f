package health

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// statLimit limits how long a sample waits for a file system. A frozen file system may never answer, for instance a
// hard NFS mount whose server is gone.
const statLimit = 200 * time.Millisecond

// fileSystem reads the state of the file system of a directory.
type fileSystem struct {
	Path
	statfs func(path string, st *unix.Statfs_t) error

	mu      sync.Mutex
	pending chan struct{} // closed when the latest call has returned; nil if there was no call
	since   time.Time     // when the latest call was made
	st      unix.Statfs_t
	err     error
}

func newFileSystem(p Path) *fileSystem { return &fileSystem{Path: p, statfs: unix.Statfs} }

// look returns the state of the file system and its ID. ok is false if the state is not known. look waits for
// statLimit at most. At most one goroutine waits for the file system, even if it never answers.
func (f *fileSystem) look(now time.Time) (d Disk, id unix.Fsid, ok bool) {
	f.mu.Lock()
	if f.pending == nil {
		done := make(chan struct{})
		f.pending, f.since = done, now
		go func() {
			var st unix.Statfs_t
			err := f.statfs(f.Path.Path, &st)
			f.mu.Lock()
			f.st, f.err, f.pending = st, err, nil
			f.mu.Unlock()
			close(done)
		}()
	}
	pending, since := f.pending, f.since
	f.mu.Unlock()
	limit := time.NewTimer(statLimit)
	defer limit.Stop()
	select {
	case <-pending:
	case <-limit.C:
		return Disk{Path: f.Path.Path, Use: f.Use, Stuck: max(statLimit, now.Sub(since))}, id, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.st.Blocks == 0 { // some file systems, such as ramfs, have no size
		return d, id, false
	}
	unit := int64(f.st.Frsize)
	if unit == 0 {
		unit = f.st.Bsize
	}
	return Disk{
		Path: f.Path.Path, Use: f.Use,
		Size: int64(f.st.Blocks) * unit, Free: int64(f.st.Bavail) * unit,
		Inodes: int64(f.st.Files), FreeInodes: int64(f.st.Ffree),
	}, f.st.Fsid, true
}

// fileSystems reads the states of all file systems. If several directories are on one file system, the first
// one names it.
func (s *sampler) fileSystems(now time.Time) (all []Disk) {
	seen := map[unix.Fsid]bool{}
	for _, f := range s.disks {
		d, id, ok := f.look(now)
		if !ok || id != (unix.Fsid{}) && seen[id] {
			continue
		}
		seen[id] = true
		all = append(all, d)
	}
	return all
}
