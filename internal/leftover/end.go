package leftover

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endEvery is the interval at which End checks killed processes.
const endEvery = 5 * time.Millisecond

// End kills the leftovers that Find returns for self and run. It returns those that it has
// killed, and those that still exist when limit has passed or ctx has ended. A process that
// waits for a device, for instance, does not end.
func End(ctx context.Context, self int, run string, limit time.Duration) (killed, left []Process) {
	seen := map[identity]bool{}
	deadline := time.Now().Add(limit)
	for suspects := map[identity]bool(nil); ; {
		now := map[identity]bool{}
		left = Read(self).Find(self, run)
		for _, p := range left {
			id := identity{p.PID, p.Start}
			now[id] = true
			if !suspects[id] {
				continue // find each process twice before killing it: the processes are not read at one moment
			}
			if p.kill(); !seen[id] {
				seen[id] = true
				killed = append(killed, p)
			}
		}
		if suspects = now; len(left) == 0 || ctx.Err() != nil || time.Now().After(deadline) {
			return killed, left
		}
		select {
		case <-time.After(endEvery):
		case <-ctx.Done():
		}
	}
}

type identity struct {
	pid   int
	start uint64
}

// kill kills the process p, but not a later process that has got the same PID.
func (p Process) kill() {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return // the process is gone
	}
	defer unix.Close(fd)
	if now, ok := stat(strconv.Itoa(p.PID)); ok && now.Start == p.Start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // the process may have ended
	}
}
