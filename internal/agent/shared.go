package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sharedDir is where shm_open(3) makes its files.
const sharedDir = "/dev/shm"

// sharedNames are the beginnings of the names that MPI libraries give to the
// memory that their ranks share: MPICH, UCX, Open MPI, libfabric, PSM.
var sharedNames = []string{"mpich_shar_tmp", "ucx_shm_", "vader_segment.", "sm_segment.", "open_mpi.", "fi_shm_", "psm2_shm.", "psm3_shm.", "Intel_MPI_"}

// sweepShared removes what ranks that were killed have left in shared memory:
// files of these names, made since the gang began, of this user, that no living
// process has open or mapped.
func sweepShared(since time.Time) {
	entries, err := os.ReadDir(sharedDir)
	if err != nil {
		return
	}
	left := map[string]bool{}
	for _, e := range entries {
		for _, begin := range sharedNames {
			if !strings.HasPrefix(e.Name(), begin) {
				continue
			}
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(since.Add(-time.Second)) {
				continue
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Getuid() {
				left[filepath.Join(sharedDir, e.Name())] = true
			}
		}
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
		_ = os.Remove(path) // another gang's agent may have been faster
	}
}

// spareUsed takes from paths those that a process has open or mapped.
func spareUsed(paths map[string]bool, process string) {
	// A file is opened first, then mapped, then closed.
	if fds, err := os.ReadDir(process + "/fd"); err == nil { // else it is gone, or another user's
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
