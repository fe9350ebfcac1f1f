package stdin

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readReady waits for input until ctx ends, and reads it. It does not read from a terminal while gangrun is in the
// background, because the kernel would then stop the process (SIGTTIN).
func readReady(ctx context.Context, file *os.File, buffer []byte) (int, error) {
	fd := int(file.Fd())
	for ctx.Err() == nil {
		if foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && foreground != unix.Getpgrp() {
			if err := pause(ctx); err != nil {
				return 0, err
			}
			continue
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, pollMillis)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return 0, err
		}
		n, err := unix.Read(fd, buffer)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
	return 0, ctx.Err()
}

// pollMillis is how long a wait for input may take to notice that the attempt has ended, in milliseconds.
const pollMillis = 20

// pause waits pollMillis, or less if ctx ends.
func pause(ctx context.Context) error {
	_, err := unix.Poll(nil, pollMillis)
	if err == unix.EINTR {
		err = nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
