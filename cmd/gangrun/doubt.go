package main

import "time"

// After how long a silence it is told that the controller of a run may be gone that
// cannot be seen from here: where its lock is free, and where nothing speaks for that.
const (
	doubtFree = 5 * time.Second
	doubtHeld = time.Minute
)

// doubt is when that is told, of one silence at doubling intervals.
type doubt struct {
	heard int64 // words of the run so far
	held  bool
	since time.Time
	next  time.Duration
}

// due returns for how long nothing was heard, and whether to tell.
func (d *doubt) due(now time.Time, heard int64, held bool) (silent time.Duration, due bool) {
	if heard != d.heard || d.since.IsZero() {
		*d = doubt{heard: heard, held: held, since: now}
	}
	if held != d.held {
		d.held, d.next = held, 0
	}
	first := doubtFree
	if held {
		first = doubtHeld
	}
	silent = now.Sub(d.since)
	if silent < max(first, d.next) {
		return silent, false
	}
	d.next = 2 * silent
	return silent, true
}

// controlWords say what the lock of a controller tells that cannot be seen from here.
func controlWords(held, known bool) string {
	switch {
	case !known:
		return "cannot be seen from here"
	case held:
		return "holds the lock on the run's directory, as far as can be seen from here"
	}
	return "does not hold the lock on the run's directory any more, as far as can be seen from here"
}
