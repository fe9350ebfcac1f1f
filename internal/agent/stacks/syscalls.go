package stacks

import (
	"maps"

	"golang.org/x/sys/unix"
)

// syscalls has the names of the system calls in which threads may wait for a long time.
var syscalls = with(map[int]string{
	unix.SYS_READ: "read", unix.SYS_READV: "readv", unix.SYS_PREAD64: "pread64", unix.SYS_PREADV: "preadv",
	unix.SYS_WRITE: "write", unix.SYS_WRITEV: "writev", unix.SYS_PWRITE64: "pwrite64", unix.SYS_PWRITEV: "pwritev",
	unix.SYS_OPENAT: "openat", unix.SYS_CLOSE: "close", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_SYNC: "sync", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate", unix.SYS_SENDFILE: "sendfile",
	unix.SYS_GETDENTS64: "getdents64", unix.SYS_FSTAT: "fstat", unix.SYS_STATX: "statx", unix.SYS_STATFS: "statfs",
	unix.SYS_FCNTL: "fcntl", unix.SYS_FLOCK: "flock", unix.SYS_IOCTL: "ioctl", unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap",
	unix.SYS_MSYNC: "msync", unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat",
	unix.SYS_MKDIRAT: "mkdirat", unix.SYS_FACCESSAT: "faccessat", unix.SYS_READLINKAT: "readlinkat", unix.SYS_EXECVE: "execve",
	unix.SYS_CONNECT: "connect", unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept4", unix.SYS_RECVFROM: "recvfrom",
	unix.SYS_RECVMSG: "recvmsg", unix.SYS_RECVMMSG: "recvmmsg", unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg",
	unix.SYS_PPOLL: "ppoll", unix.SYS_PSELECT6: "pselect6", unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_EPOLL_PWAIT2: "epoll_pwait2",
	unix.SYS_FUTEX: "futex", unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep",
	unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait",
	unix.SYS_RT_SIGSUSPEND: "rt_sigsuspend", unix.SYS_SEMTIMEDOP: "semtimedop", unix.SYS_SEMOP: "semop", unix.SYS_MSGRCV: "msgrcv",
	unix.SYS_MQ_TIMEDRECEIVE: "mq_timedreceive", unix.SYS_IO_GETEVENTS: "io_getevents", unix.SYS_IO_URING_ENTER: "io_uring_enter",
	unix.SYS_SCHED_YIELD: "sched_yield", unix.SYS_RESTART_SYSCALL: "restart_syscall", unix.SYS_EXIT: "exit", unix.SYS_EXIT_GROUP: "exit_group",
}, older)

// onDescriptor has the system calls whose first argument is a file descriptor.
var onDescriptor = set(
	unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64,
	unix.SYS_PWRITEV, unix.SYS_CLOSE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_GETDENTS64, unix.SYS_FSTAT, unix.SYS_FCNTL, unix.SYS_FLOCK, unix.SYS_IOCTL, unix.SYS_CONNECT, unix.SYS_ACCEPT,
	unix.SYS_ACCEPT4, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_SENDTO, unix.SYS_SENDMSG)

func with(a, b map[int]string) map[int]string {
	maps.Copy(a, b)
	return a
}

func set(numbers ...int) map[int]bool {
	s := map[int]bool{}
	for _, n := range numbers {
		s[n] = true
	}
	return s
}
