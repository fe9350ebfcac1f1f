package watchdog

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter is the hidden command "gangrun enter SOCKET agent HOST", the first process of a container.
// It connects to the agent of the host, which listens on SOCKET. Then it becomes "gangrun agent
// HOST", which uses that connection as its connection to a controller. It returns an exit code only
// if that fails.
func Enter(args []string) int {
	if err := enter(args); err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: enter:", err)
	}
	return 70
}

func enter(args []string) error {
	if len(args) != 3 || args[1] != "agent" {
		return fmt.Errorf("want SOCKET agent HOST, got %q", args)
	}
	conn, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(conn, &unix.SockaddrUnix{Name: args[0]}); err != nil {
		return os.NewSyscallError("connect to "+args[0], err)
	}
	lifeline, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0) // nobody reads the other end
	if err != nil {
		return os.NewSyscallError("open /dev/null", err)
	}
	// Each descriptor may have the number that the other one needs. So both move to higher numbers first.
	for _, fd := range []*int{&conn, &lifeline} {
		if *fd, err = unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, aboveFD+1); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	for to, from := range map[int]int{ConnFD: conn, LifelineFD: lifeline} {
		if err := unix.Dup3(from, to, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return syscall.Exec("/proc/self/exe", append([]string{os.Args[0]}, args[1:]...), os.Environ())
}
