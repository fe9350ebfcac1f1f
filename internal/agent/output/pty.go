package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Opener opens the pipe or pseudoterminal that connects a stream of a rank with the agent. ours is the end from
// which the agent reads, and theirs is the rank's end.
type Opener func() (ours, theirs *os.File, err error)

// OpenPipe opens a pipe.
func OpenPipe() (ours, theirs *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // only our end
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// OpenPTY opens a pseudoterminal that passes on every byte unchanged. It does not become the controlling
// terminal of any process, so it causes no signals.
func OpenPTY() (ours, theirs *os.File, err error) {
	if ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, noPTY(err)
	}
	raw, err := ours.SyscallConn()
	if err == nil {
		if controlErr := raw.Control(func(fd uintptr) { theirs, err = slaveOf(int(fd)) }); err == nil {
			err = controlErr
		}
	}
	if err != nil {
		return nil, nil, errors.Join(noPTY(err), ours.Close())
	}
	return ours, theirs, nil
}

// slaveOf opens the slave of a pseudoterminal's master. It does not use /dev/pts, which in a
// container may belong to other masters.
func slaveOf(master int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return nil, os.NewSyscallError("unlock the slave of /dev/ptmx", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, os.NewSyscallError("open the slave of /dev/ptmx", errno)
	}
	slave := int(fd)
	settings, err := unix.IoctlGetTermios(slave, unix.TCGETS)
	if err == nil {
		settings.Iflag, settings.Oflag, settings.Lflag = 0, 0, 0 // no carriage returns, no echo, no signals
		size := unix.Winsize{Row: 24, Col: 80}                   // the size that most programs assume
		err = errors.Join(unix.IoctlSetTermios(slave, unix.TCSETS, settings), unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, &size))
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("set up the slave of /dev/ptmx", err), unix.Close(slave))
	}
	return os.NewFile(fd, "pty"), nil
}

// PTYError says why this host could not open a pseudoterminal for a stream.
type PTYError struct{ Why string }

// Error returns the reason.
func (e PTYError) Error() string { return e.Why }

// noPTY turns an error of OpenPTY into a PTYError, unless OpenPipe would fail for the same
// reason.
func noPTY(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return err
	case errors.Is(err, unix.ENOSPC):
		return PTYError{Why: "every pseudoterminal is in use: raise the limit, kernel.pty.max or max= of devpts"}
	case errors.Is(err, os.ErrNotExist):
		return PTYError{Why: "there is no /dev/ptmx: mount devpts on /dev/pts"}
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return PTYError{Why: "/dev/ptmx has no devpts: mount it on /dev/pts"}
	}
	return PTYError{Why: err.Error()}
}
