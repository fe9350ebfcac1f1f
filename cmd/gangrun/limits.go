package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/launcher"
)

// leastFiles is how many descriptors gangrun and the agent of one small gang need.
const leastFiles = 64

// threadsOfAgent is how many threads an agent and its watchdog may have.
const threadsOfAgent = 32

// usable checks that this machine gives gangrun what it cannot do without.
func usable() error {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return &failure{code: exitInternal, err: fmt.Errorf("/proc is not there, and gangrun starts its agents through it: %w", err),
			hint: "as root: mount -t proc proc /proc; in a container, start it so that it has one"}
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < leastFiles {
		return &failure{code: exitInternal, err: fmt.Errorf("this process may have %d open files, and gangrun needs at least %d", files.Cur, leastFiles),
			hint: fmt.Sprintf("raise the limit of the shell: ulimit -n %d; where that is refused, ask for a higher hard limit (ulimit -Hn, limits.conf)", moreFiles)}
	}
	return nil
}

// moreFiles is a limit on descriptors, and moreProcesses one on processes, that is enough
// for most gangs.
const moreFiles, moreProcesses = 4096, 4096

// limitHint says which limit of this machine an error comes from, with its value, and how
// to raise it; "" where it comes from none.
func limitHint(err error) string {
	var mute *launcher.MuteError
	switch {
	case errors.Is(err, unix.EMFILE):
		var files unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
			return ""
		}
		return fmt.Sprintf("this process may have %d open files: raise the limit: ulimit -n %d; or use fewer hosts or ranks", files.Cur, max(moreFiles, 2*files.Cur))
	case errors.Is(err, unix.ENFILE):
		return "this machine has no more open files: raise the limit, as root: sysctl fs.file-max=N"
	case errors.Is(err, unix.EAGAIN), errors.As(err, &mute) && mute.Local:
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || os.Geteuid() == 0 { // who is not bound by it
			return ""
		}
		return processHint(limit.Cur, ownThreads("/proc", os.Getuid()))
	}
	return ""
}

// processHint is limitHint for a limit on processes, of which so many are used.
func processHint(limit, used uint64) string {
	if limit == unix.RLIM_INFINITY || used+threadsOfAgent <= limit {
		return ""
	}
	return fmt.Sprintf("this user may have %d processes and threads and has %d, and an agent can need %d more: raise the limit: ulimit -u %d; or end some of them", limit, used, threadsOfAgent, max(moreProcesses, 2*used))
}

// ownThreads counts a user's threads, as the kernel does for the limit on processes.
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
		status, _ := os.ReadFile(filepath.Join(dir, "status")) // nothing of one that has just ended
		for line := range strings.Lines(string(status)) {
			if text, ok := strings.CutPrefix(line, "Threads:"); ok {
				n, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
				threads += n
			}
		}
	}
	return threads
}

// workingDir returns the working directory. Where there is none any more, as after rm -r,
// that is an error only if something is to be found from it; flag is what names another.
func workingDir(needed bool, flag string) (string, error) {
	dir, err := os.Getwd()
	switch {
	case err == nil:
		return dir, nil
	case !needed:
		return "/", nil
	}
	gone, _ := os.Readlink("/proc/self/cwd") // the kernel writes "(deleted)" behind it
	return "", usage("go to one that is there: cd DIR; or give absolute paths, and "+flag+" DIR", "the working directory %q cannot be used: %w", gone, err)
}
