// Package watchdog starts the agent of a host under two watchdogs, and waits for its end. It
// imports almost nothing, and not net, so that Go initialises it early. While they wait, the watchdogs have not
// initialised the rest of the program. That saves most of their memory. They initialise it if
// they have to clean up after an agent that was killed (package agent).
//
// When a process dies, the kernel gives its children to the nearest ancestor that is a
// subreaper. So if the agent and the inner watchdog are killed, the outer watchdog inherits
// every process that the agent has started, and kills it. The name of the outer watchdog
// differs from that of other processes of gangrun. So "pkill -9 gangrun" does not kill it, and
// leaves no ranks behind.
package watchdog

import (
	"fmt"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors that an agent finds open.
const (
	// ConnFD is the controller's connection, in the watchdogs and in the agent.
	ConnFD = 3
	// LifelineFD is a pipe that the watchdogs and the agent hold open without using it. When
	// all of them have ended, the controller reads the end of the pipe.
	LifelineFD = 4
	// AliveFD is, in the agent, a pipe that ends when the inner watchdog ends.
	AliveFD = 5
	// KeepFD is, in the agent, a socket. Through it, the agent gives files to its watchdogs,
	// which keep the files open until all processes of the agent are gone.
	KeepFD = 6
)

// Descriptors that a watchdog finds open.
const (
	heldFD  = 5 // any file, to be kept open as long as the watchdogs live; may be missing
	aboveFD = 6 // in the inner watchdog, its socket to the outer one
)

// Values of the second argument of "gangrun agent HOST [ROLE]", which says which process it is. The outer
// watchdog has no second argument.
const (
	Inner  = "watchdog" // the inner watchdog
	Worker = "worker"   // the agent itself
)

// Name is the process name of the outer watchdog. It replaces the name of the program.
const Name = "gang-watchdog"

// process is this process, after it has started its child.
type process struct {
	child int      // the PID of the inner watchdog, or of the agent
	inner bool     // this is the inner watchdog: its child is the agent
	below *os.File // a socket to the child
	above *os.File // the socket of the inner watchdog to the outer one; nil in the outer watchdog
	alive *os.File // open as long as this process lives
}

// leaveTerminal detaches this process and its later children from the terminal. Otherwise, a rank that opens /dev/tty
// could be stopped. Now the rank gets an error.
func leaveTerminal() {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // this process has no terminal
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCNOTTY, 0)
	_ = unix.Close(fd)
}

// start starts the process below this one.
func start(host string, inner bool) (w *process, err error) {
	// Ranks must not inherit files that the caller of gangrun has left open.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(fds[1])
	w = &process{inner: inner, below: os.NewFile(uintptr(fds[0]), "below")}
	argv := []string{os.Args[0], "agent", host, Inner}
	files := []uintptr{0, 1, 2, ConnFD, LifelineFD}
	if inner {
		w.above = os.NewFile(aboveFD, "above")
		var ours *os.File
		if ours, w.alive, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer ours.Close()
		argv[3], files = Worker, append(files, ours.Fd(), uintptr(fds[1]))
	} else {
		leaveTerminal()
		rename()
		held := uintptr(heldFD)
		if _, err := unix.FcntlInt(held, unix.F_GETFD, 0); err != nil {
			held = LifelineFD // this process has no such file, and any valid descriptor will do
		}
		files = append(files, held, uintptr(fds[1]))
	}
	if w.child, err = syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{Env: os.Environ(), Files: files}); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	// Only the agent holds the connection, so that the controller notices its death.
	_ = unix.Close(ConnFD)
	return w, nil
}

// rename changes the name of this process's first thread to Name; other threads keep theirs.
func rename() {
	_ = os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", os.Getpid()), []byte(Name), 0) // if this fails, the name stays
}
