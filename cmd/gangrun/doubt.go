package main

import (
	"fmt"
	"io"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

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

// forlorn returns the controller of a run that has not ended, where it cannot be seen
// from here and does not hold its lock: nil otherwise.
func forlorn(run home.Run) *job.Controller {
	s, err := run.Summary()
	if err != nil || s.Controller == nil || s.State.Final() {
		return nil
	}
	if _, known := home.Alive(*s.Controller); known {
		return nil
	}
	if held, seen := run.Controlled(); held || !seen {
		return nil
	}
	// It may have let go with the end of the run, since that was read.
	if now, err := run.Summary(); err != nil || now.State.Final() || now.Controller == nil || *now.Controller != *s.Controller {
		return nil
	}
	return s.Controller
}

// tellForlorn says what to do about a run whose controller may be gone.
func tellForlorn(w io.Writer, run home.Run, c job.Controller) {
	fmt.Fprintf(w, "gangrun: note: the controller of run %s, %s, %s; %s\n", run.ID, nameOf(c), controlWords(false, true), ifGone(run))
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
