package tempfiles

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/process"
)

// SharedDir is the directory in which shm_open(3) makes its files.
const SharedDir = "/dev/shm"

// sharedNames has the beginnings of the names of the shared memory that MPI libraries make for their ranks: MPICH, UCX,
// Open MPI, libfabric and PSM.
var sharedNames = []string{"mpich_shar_tmp", "ucx_shm_", "vader_segment.", "sm_segment.", "open_mpi.", "fi_shm_", "psm2_shm.", "psm3_shm.", "Intel_MPI_"}

// fileID identifies a file, and distinguishes it from later files of the same name.
type fileID struct {
	major, minor uint32
	inode        uint64
}

// SharedMemory remembers the shared memory files of MPI libraries that processes of a gang have mapped. Remove removes
// only these files and the test files of Open MPI (see probes), because another file may belong to processes of another
// PID namespace, which this process cannot see.
type SharedMemory struct {
	mu     sync.Mutex
	mapped map[string]fileID // by path
	done   chan struct{}     // closed when the latest scan is over; nil before the first scan
}

// Scan finds out in the background which files the descendants of this process have mapped. It returns a
// channel that is closed at the end of the scan. A process that hangs in the kernel may delay the end. Only one
// scan runs at a time.
func (s *SharedMemory) Scan() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil && !isClosed(s.done) {
		return s.done
	}
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		for _, p := range process.Descendants(os.Getpid()) {
			s.add(p.PID)
		}
	}()
	return done
}

// add records which shared memory files a process has mapped.
func (s *SharedMemory) add(pid int) {
	maps, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return // the process is gone
	}
	defer maps.Close()
	found := scanShared(io.LimitReader(maps, maxMaps))
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, id := range found {
		if s.mapped == nil {
			s.mapped = map[string]fileID{}
		}
		s.mapped[path] = id
	}
}

// scanShared finds the shared memory files of MPI libraries in a file that has the format of proc_pid_maps(5).
func scanShared(maps io.Reader) map[string]fileID {
	found := map[string]fileID{}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if !bytes.Contains(lines.Bytes(), []byte(SharedDir+"/")) {
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || !sharedName(fields[5]) { // the line of a removed file has one more field
			continue
		}
		major, minor, _ := strings.Cut(fields[3], ":")
		first, err1 := strconv.ParseUint(major, 16, 32)
		second, err2 := strconv.ParseUint(minor, 16, 32)
		inode, err3 := strconv.ParseUint(fields[4], 10, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			found[fields[5]] = fileID{uint32(first), uint32(second), inode}
		}
	}
	return found
}

// sharedName reports whether a path is that of a shared memory file of an MPI library.
func sharedName(path string) bool {
	dir, name := filepath.Split(path)
	for _, begin := range sharedNames {
		if dir == SharedDir+"/" && strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// Remove deletes the shared memory files that killed ranks have left. start is the time at which the gang began. A file
// is such a file if it belongs to this user, was made after start, and is neither open nor mapped in any living
// process. One of the ranks must have mapped it, unless it is a test file of Open MPI (see probes).
func (s *SharedMemory) Remove(start time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]bool{}
	for path, id := range s.mapped {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(start.Add(-time.Second)) {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && int(stat.Uid) == os.Getuid() && id == (fileID{unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino}) {
			left[path] = true
		}
	}
	for _, path := range probes(start) {
		left[path] = true
	}
	if len(left) == 0 {
		return
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err == nil {
			spareUsed(left, "/proc/"+p.Name())
		}
	}
	for path := range left {
		_ = os.Remove(path) // the agent of another gang may have removed it already
	}
}

// probes returns empty files with which ranks of Open MPI test shared memory when they start. It returns those that
// belong to this user and were made since a time. A rank unlinks its file right after it has made the file. A rank that
// is killed in between leaves the file, and has not mapped it.
func probes(since time.Time) (paths []string) {
	found, _ := filepath.Glob(filepath.Join(SharedDir, "open_mpi.*"))
	for _, path := range found {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 0 || info.ModTime().Before(since.Add(-time.Second)) {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Getuid() {
			paths = append(paths, path)
		}
	}
	return paths
}

// spareUsed removes those files from paths that a process has open or mapped.
func spareUsed(paths map[string]bool, process string) {
	// A process opens a file first, then maps it, and then closes it.
	if fds, err := os.ReadDir(process + "/fd"); err == nil { // otherwise the process is gone or belongs to another user
		for _, fd := range fds {
			if target, err := os.Readlink(process + "/fd/" + fd.Name()); err == nil {
				delete(paths, target)
			}
		}
	}
	if maps, err := os.ReadFile(process + "/maps"); err == nil {
		text := string(maps)
		for path := range paths {
			if strings.Contains(text, path) {
				delete(paths, path)
			}
		}
	}
}

// maxMaps limits how many bytes of a process's maps are read. It is enough for about 200,000 mappings, which is three
// times the kernel's default limit.
const maxMaps = 16 << 20

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
