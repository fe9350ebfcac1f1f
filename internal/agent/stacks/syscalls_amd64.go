package stacks

import "golang.org/x/sys/unix"

// older has system calls that newer architectures do not have.
var older = map[int]string{
	unix.SYS_OPEN: "open", unix.SYS_STAT: "stat", unix.SYS_LSTAT: "lstat", unix.SYS_ACCESS: "access", unix.SYS_RENAME: "rename",
	unix.SYS_UNLINK: "unlink", unix.SYS_MKDIR: "mkdir", unix.SYS_READLINK: "readlink", unix.SYS_POLL: "poll",
	unix.SYS_SELECT: "select", unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_PAUSE: "pause", unix.SYS_NEWFSTATAT: "newfstatat",
}
