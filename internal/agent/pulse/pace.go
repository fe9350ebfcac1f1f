package pulse

import (
	"time"

	"golang.org/x/sys/unix"
)

// share is how much of one core taking the pulses may use: a thousandth.
const share = 1000

// slowest bounds the time between two rounds, however much a round costs.
const slowest = time.Minute

// Pace is the time from one round to the next, after a round that has taken cost. It is least, or
// more if the round was expensive.
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
