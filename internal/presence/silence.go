package presence

import "time"

// How long a run may be silent before a follower is warned that its controller, which
// cannot be seen from this host, may be gone.
const (
	warnUnlocked = 5 * time.Second // the lock on the run's directory is free
	warnLocked   = time.Minute     // a process seems to hold it
)

// Silence decides when to warn that a run is silent: it has had no event and no output. After a warning, it warns again
// when the silence has become twice as long. The zero value is ready for use.
type Silence struct {
	count  int64 // of events and pieces of output so far
	locked bool
	since  time.Time
	next   time.Duration
}

// Warn returns how long the run has been silent, and whether to warn of that now. count is the number of events and
// pieces of output of the run so far. locked says whether a process seems to hold the lock on the run's directory.
func (s *Silence) Warn(now time.Time, count int64, locked bool) (silent time.Duration, warn bool) {
	if count != s.count || s.since.IsZero() {
		*s = Silence{count: count, locked: locked, since: now}
	}
	if locked != s.locked {
		s.locked, s.next = locked, 0
	}
	first := warnUnlocked
	if locked {
		first = warnLocked
	}
	silent = now.Sub(s.since)
	if silent < max(first, s.next) {
		return silent, false
	}
	s.next = 2 * silent
	return silent, true
}
