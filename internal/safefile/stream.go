package safefile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookEvery is how often a wait for a writer checks its context, in milliseconds.
	lookEvery = 50
	// patience is how long a writer may be silent before the user is told of the wait.
	patience = time.Second
)

// ReadStream returns what can be read from path. It reads at most limit+1 bytes. The path may also
// be that of a pipe, a terminal or a device, such as /dev/stdin, or /dev/fd/63 for the <(...) of a
// shell. If ReadStream has to wait for a writer, it calls onWait once, with the kind of the file.
// If ctx ends first, the error is the cause of ctx.
func ReadStream(ctx context.Context, path string, limit int64, onWait func(fs.FileMode)) ([]byte, error) {
	// With O_NONBLOCK the open of a FIFO does not wait for a writer; awaitInput does.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var text []byte
	buffer := make([]byte, 64<<10)
	for int64(len(text)) <= limit {
		if err := awaitInput(ctx, fd, func() { tellWait(path, &onWait) }); err != nil {
			return nil, err
		}
		n, err := unix.Read(fd, buffer[:min(int64(len(buffer)), limit+1-int64(len(text)))])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return text, nil
		}
		text = append(text, buffer[:n]...)
	}
	return text, nil
}

// tellWait calls *waiting with the kind of file that path is, the first time only.
func tellWait(path string, waiting *func(fs.FileMode)) {
	if info, err := os.Stat(path); err == nil && *waiting != nil {
		(*waiting)(info.Mode())
	}
	*waiting = nil
}

// awaitInput returns when a read from fd does not have to wait, or with the cause of
// ctx. It calls late when that takes long.
func awaitInput(ctx context.Context, fd int, late func()) error {
	for begun := time.Now(); ; {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, lookEvery)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("poll", err)
		case ready > 0:
			return nil
		case time.Since(begun) > patience:
			late()
		}
	}
}
