// Package cgroup makes a control group for ranks, so that the kernel can kill all of their processes at once.
// It also reads the control groups that limit the memory and the CPU time of processes.
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

// Group is the control group of an agent's ranks. The kernel kills all processes in it at once (cgroup.kill),
// even those of a fork bomb. A nil Group is valid: it means that this user cannot make a group on this host.
// The agent then kills the processes of ranks one by one.
type Group struct {
	path string
	dir  *os.File // for clone3(2) CLONE_INTO_CGROUP

	mu sync.Mutex
	// killed is true if the kernel may kill processes that are forked into the group later. Newer kernels compare the
	// group's number of kills with the number of kills of the forking process's group.
	killed bool
}

// New makes a group for the agent whose PID is pid. The group is below the group of this process in the version
// 2 hierarchy. New returns nil if it cannot make the group. The group is locked as long as this process lives.
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

// lockedDir locks the directory of a group. It returns false if another agent removes the group. That agent has started
// at the same time, and believes that the group belongs to a dead agent.
func lockedDir(dir *os.File) bool {
	if unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return false
	}
	ours, err := dir.Stat()
	there, err2 := os.Stat(dir.Name())
	return err == nil && err2 == nil && os.SameFile(ours, there)
}

// Open opens the group of the agent with the given PID. It returns nil if there is no such group, or if the
// kernel cannot kill groups (cgroup.kill), as before Linux 5.14.
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

// cgroupPath returns the path of the group of the agent with a PID. The group need not exist. cgroupPath returns "" if
// there is no version 2 hierarchy.
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

// cgroup2Mount returns the path at which the version 2 hierarchy is mounted, or "". See proc_pid_mountinfo(5): the type
// follows a field that is a hyphen.
func cgroup2Mount(lines *bufio.Scanner) string {
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) >= 5 {
			return fields[4]
		}
	}
	return ""
}

// cgroup2Path returns the path of a process's group in the version 2 hierarchy. own is the text of the process's
// /proc/PID/cgroup.
func cgroup2Path(own string) (string, bool) {
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, true
		}
	}
	return "", false
}

// fd returns the descriptor of the group into which a process can be forked. It returns false if there is none.
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

// renew replaces the group by a new group. The old group must be empty.
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
		_ = os.WriteFile(filepath.Join(c.path, "cgroup.kill"), []byte("1"), 0) // the caller also kills them one by one
	}
}

// Close removes the group, which must be empty.
func (c *Group) Close() {
	if c != nil {
		_ = c.dir.Close()
		_ = removeCgroup(c.path)
	}
}

// removeCgroup removes a group, and the groups that ranks have made in it. All of them must be empty.
func removeCgroup(path string) error {
	entries, _ := os.ReadDir(path) // os.Remove returns the error
	for _, e := range entries {
		if e.IsDir() {
			_ = removeCgroup(filepath.Join(path, e.Name())) // the last os.Remove returns the error
		}
	}
	return os.Remove(path)
}

// isCgroup reports whether the name of a group is one that agents use. For instance, gangrun.service is not.
func isCgroup(path string) bool {
	pid, namespace, ok := strings.Cut(strings.TrimPrefix(filepath.Base(path), "gangrun."), ".")
	_, err := strconv.ParseUint(pid, 10, 32)
	_, err2 := strconv.ParseUint(namespace, 10, 64)
	return ok && err == nil && err2 == nil
}

// EndDead kills the processes in the groups of agents that were killed together with their
// watchdogs, and removes those groups. It looks below this process's own group.
func EndDead() {
	if own := cgroupPath(os.Getpid()); own != "" {
		endDeadIn(filepath.Dir(own))
	}
}

// endDeadIn does the work of EndDead for the groups below the group parent.
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
			return !errors.Is(removeCgroup(path), unix.EBUSY) // a group is busy while there are processes in it
		})
	}
}

// Start starts a program in the group. If the kernel refuses to start it there, or the group was
// removed, Start starts the program outside of the group.
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
