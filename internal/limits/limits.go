// Package limits explains errors that come from limits of this machine on open files,
// processes and threads.
package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/procfs"
)

const (
	leastFiles    = 64 // the number of open files that gangrun and the agent of one small gang need
	agentThreads  = 32 // the number of threads that an agent and its watchdogs may start
	moreFiles     = 4096
	moreProcesses = 4096
)

// CheckFiles returns an error with a hint if this process may open too few files.
func CheckFiles() (hint string, err error) {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil || files.Cur >= leastFiles {
		return "", nil
	}
	return fmt.Sprintf("raise the limit of the shell: ulimit -n %d; where that is refused, ask for a higher hard limit (ulimit -Hn, limits.conf)", moreFiles),
		fmt.Errorf("this process may have %d open files, and gangrun needs at least %d", files.Cur, leastFiles)
}

// Hint describes the limit of this machine that caused err: its value, and how to raise it. It
// returns "" if no such limit caused err.
func Hint(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		var files unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
			return ""
		}
		return fmt.Sprintf("this process may have %d open files: raise the limit: ulimit -n %d; or use fewer hosts or ranks", files.Cur, max(moreFiles, 2*files.Cur))
	case errors.Is(err, unix.ENFILE):
		return "this machine has no more open files: raise the limit, as root: sysctl fs.file-max=N"
	case errors.Is(err, unix.EAGAIN):
		return Processes()
	}
	return ""
}

// Processes describes the limit on the number of this user's processes, and how to raise it. It
// returns "" if the limit leaves room for an agent.
func Processes() string {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || os.Geteuid() == 0 { // the limit does not apply to root
		return ""
	}
	return processHint(limit.Cur, ownThreads("/proc", os.Getuid()))
}

func processHint(limit, used uint64) string {
	if limit == unix.RLIM_INFINITY || used+agentThreads <= limit {
		return ""
	}
	return fmt.Sprintf("this user may have %d processes and threads and has %d, and an agent can need %d more: raise the limit: ulimit -u %d; or end some of them", limit, used, agentThreads, max(moreProcesses, 2*used))
}

// ownThreads counts a user's threads in the same way as the kernel does for the limit on processes.
func ownThreads(proc string, uid int) (threads uint64) {
	dirs, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(stat.Uid) != uid {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(dir, "status")) // this fails if the process has just ended
		text, _ := procfs.Field(status, "Threads")
		n, _ := strconv.ParseUint(text, 10, 64)
		threads += n
	}
	return threads
}
