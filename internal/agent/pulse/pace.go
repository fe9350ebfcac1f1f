package pulse

import (
	"time"

	"golang.org/x/sys/unix"
)

// share limits the CPU time that the rounds use: on average, at most 1/share of a core.
const share = 1000

// slowest is the longest time between two rounds.
const slowest = time.Minute

// Pace returns how long to wait between the end of a round and the next round. cost is the CPU time that the
// round has used. The higher cost is, the longer is the wait. The wait is at least shortest. It is at most a minute
// or, if shortest is more than a minute, exactly shortest.
func Pace(shortest, cost time.Duration) time.Duration {
	return min(max(shortest, share*cost), max(shortest, slowest))
}

// Spent returns the CPU time of the calling thread. The calling goroutine must be locked to its thread.
func Spent() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
