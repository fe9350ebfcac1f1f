package pulse

import (
	"time"

	"golang.org/x/sys/unix"
)

// share limits the CPU time of the rounds: they may use 1/share of a core on average.
const share = 1000

// slowest is the longest time between two rounds.
const slowest = time.Minute

// Pace returns the time until the next round, after a round. cost is the CPU time that the round has used. The result is never shorter than least.
func Pace(least, cost time.Duration) time.Duration {
	return min(max(least, share*cost), max(least, slowest))
}

// Spent returns the CPU time of the calling thread. The goroutine must be locked to it.
func Spent() time.Duration {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
