package cgroup

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/identity"
	"github.com/gangrun/gangrun/internal/agent/process"
)

// Group is a control group of the ranks of one host, where the system lets
// this user make one: the kernel then kills a whole fork bomb at once
// (cgroup.kill). Without one, ending descendants one by one has to do.
type Group struct {
	path string
	dir  *os.File // for clone3(2) CLONE_INTO_CGROUP

	mu sync.Mutex
	// killed says that the kernel may kill whatever is forked into the group from
	// now on: newer ones compare how often the group was killed with how often the
	// forking process's own was.
	killed bool
}

// New makes a cgroup for the agent with that PID below this process's own
// one in the version 2 hierarchy, or returns nil where that is not possible. It is
// locked as long as the process lives.
func New(pid int) *Group {
	path := cgroupPath(pid)
	if path == "" || os.Mkdir(path, 0o755) != nil {
		return nil
	}
	if group := Open(pid); group != nil {
		if lockedDir(group.dir) {
			return group
		}
		_ = group.dir.Close()
	}
	_ = os.Remove(path)
	return nil
}

// lockedDir locks the directory of a cgroup. It is false where another agent that has
// started at the same time took it for one of a dead agent, and removes it.
func lockedDir(dir *os.File) bool {
	if unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	ours, err := dir.Stat()
	there, err2 := os.Stat(dir.Name())
	return err == nil && err2 == nil && os.SameFile(ours, there)
}

// Open opens the cgroup of the agent with that PID; nil if there is none
// that can be killed (cgroup.kill came with Linux 5.14).
func Open(pid int) *Group {
	path := cgroupPath(pid)
	if path == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, "cgroup.kill")); err != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	return &Group{path: path, dir: dir}
}

// cgroupPath returns where the cgroup of the agent with that PID is or would
// be, "" when there is no version 2 hierarchy.
func cgroupPath(pid int) string {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer mounts.Close()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	root := cgroup2Mount(bufio.NewScanner(mounts))
	sub, ok := cgroup2Path(string(own))
	if root == "" || !ok {
		return ""
	}
	return filepath.Join(root, sub, "gangrun."+identity.AgentName(pid))
}

// cgroup2Mount finds where the version 2 hierarchy is mounted; "" if nowhere.
// See proc_pid_mountinfo(5): the type follows a lone hyphen.
func cgroup2Mount(lines *bufio.Scanner) string {
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) >= 5 {
			return fields[4]
		}
	}
	return ""
}

// cgroup2Path finds the path of the process in the version 2 hierarchy.
func cgroup2Path(own string) (string, bool) {
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, true
		}
	}
	return "", false
}

// fd returns the descriptor to fork into, and whether there is one.
func (c *Group) fd() (int, bool) {
	if c == nil {
		return -1, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed && !c.renew() {
		return -1, false
	}
	return int(c.dir.Fd()), true
}

// renew makes the group, which must be empty, anew.
func (c *Group) renew() bool {
	if removeCgroup(c.path) != nil || os.Mkdir(c.path, 0o755) != nil {
		return false
	}
	dir, err := os.Open(c.path)
	if err != nil {
		return false
	}
	_ = c.dir.Close()
	c.dir, c.killed = dir, false
	return lockedDir(dir)
}

// Kill kills every process in the group.
func (c *Group) Kill() {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.killed = true
		_ = os.WriteFile(filepath.Join(c.path, "cgroup.kill"), []byte("1"), 0) // the scan follows anyway
	}
}

// Close removes the group, which must be empty.
func (c *Group) Close() {
	if c != nil {
		_ = c.dir.Close()
		_ = removeCgroup(c.path)
	}
}

// removeCgroup removes a group, and those that ranks have made in it, which must be empty.
func removeCgroup(path string) error {
	entries, _ := os.ReadDir(path) // os.Remove tells
	for _, e := range entries {
		if e.IsDir() {
			_ = removeCgroup(filepath.Join(path, e.Name())) // the same
		}
	}
	return os.Remove(path)
}

// isCgroup reports whether a cgroup has the name of one that an agent makes: others that
// begin like it, as a gangrun.service, are somebody else's.
func isCgroup(path string) bool {
	pid, namespace, ok := strings.Cut(strings.TrimPrefix(filepath.Base(path), "gangrun."), ".")
	_, err := strconv.ParseUint(pid, 10, 32)
	_, err2 := strconv.ParseUint(namespace, 10, 64)
	return ok && err == nil && err2 == nil
}

// EndDead kills what is in the cgroups of agents below this process's own cgroup
// that were killed, together with their watchdogs, and removes them.
func EndDead() {
	if own := cgroupPath(os.Getpid()); own != "" {
		endDeadIn(filepath.Dir(own))
	}
}

// endDeadIn does what endDeadCgroups does, in the cgroup at parent.
func endDeadIn(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, "gangrun.*"))
	var dead []string
	for _, path := range paths {
		if !isCgroup(path) {
			continue
		}
		dir, err := os.Open(path)
		if err != nil {
			continue
		}
		defer dir.Close()
		if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
			dead = append(dead, path)
		}
	}
	for deadline := time.Now().Add(process.KillLimit); len(dead) > 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		dead = slices.DeleteFunc(dead, func(path string) bool {
			return !errors.Is(removeCgroup(path), unix.EBUSY) // which it is while there are processes in it
		})
	}
}

// Start starts the program in the cgroup, and without it where the kernel
// refuses that (the errors of clone3(2) for CLONE_INTO_CGROUP, ENOENT for a cgroup that
// was removed).
func (c *Group) Start(fork process.Starter, path string, argv []string, attr *syscall.ProcAttr) (*process.Child, error) {
	fd, ok := c.fd()
	if !ok {
		return fork(path, argv, attr)
	}
	with := *attr.Sys
	with.UseCgroupFD, with.CgroupFD = true, fd
	ch, err := fork(path, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: attr.Files, Sys: &with})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EBUSY), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV),
		errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return fork(path, argv, attr)
	}
	return ch, err
}
