// Package watchdog starts the agent of a host under its watchdog. It is a package
// of its own, which needs next to nothing, so that the agent starts while the
// rest of the watchdog's program is being set up.
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
	// ConnFD is the controller's connection, in the watchdog and in the agent.
	ConnFD = 3
	// LifelineFD is a pipe that both hold open and nobody uses: the controller
	// sees its end when both are gone.
	LifelineFD = 4
	// AliveFD is, in the agent, a pipe that ends when the watchdog does.
	AliveFD = 5
	// KeepFD is, in the agent, a socket by which it gives the watchdog files to keep
	// open until all that is left of the agent is gone.
	KeepFD = 6
)

// Worker follows the host's name among the arguments of the process that the
// watchdog starts.
const Worker = "worker"

// Watchdog is this process, which has started an agent.
type Watchdog struct {
	Agent int      // its PID
	Keep  *os.File // the other end of KeepFD
	ours  *os.File // open as long as this process lives
}

// started is what Start has done in this process.
var started struct {
	done     bool
	watchdog *Watchdog
	err      error
}

// Start starts the agent if the arguments are a watchdog's, the name of a host,
// and this process has not done so.
func Start(args []string) (*Watchdog, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("want the name of a host, got %q", args)
	}
	if !started.done {
		started.done = true
		started.watchdog, started.err = start(args[0])
	}
	return started.watchdog, started.err
}

// leaveTerminal takes this process, and what it starts, away from the terminal
// that whoever started it may have: ranks that open /dev/tty must fail, not stop.
func leaveTerminal() {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // there is none
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCNOTTY, 0)
	_ = unix.Close(fd)
}

func start(host string) (*Watchdog, error) {
	// Nothing that whoever started gangrun has left open is for the ranks.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	leaveTerminal()
	alive, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	keep, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = ours.Close()
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(keep[1])
	pid, err := syscall.ForkExec("/proc/self/exe", []string{os.Args[0], "agent", host, Worker}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, ConnFD, LifelineFD, alive.Fd(), uintptr(keep[1])},
	})
	if err != nil {
		_ = ours.Close()
		_ = unix.Close(keep[0])
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	// The connection is the agent's: when it dies, the controller must see it.
	_ = unix.Close(ConnFD)
	return &Watchdog{Agent: pid, Keep: os.NewFile(uintptr(keep[0]), "keep"), ours: ours}, nil
}
