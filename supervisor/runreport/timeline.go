package runreport

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

type phase int

const (
	phaseNone phase = iota
	phasePreflight
	phaseWaiting
	phaseLaunching
	phaseRunning
	phaseBackoff
)

// phaseOf maps a state to what its time is counted as.
func phaseOf(s job.State) phase {
	switch s {
	case job.StatePreflight:
		return phasePreflight
	case job.StateWaiting:
		return phaseWaiting
	case job.StateLaunching:
		return phaseLaunching
	case job.StateRunning, job.StateStopping:
		return phaseRunning
	}
	return phaseNone
}

// timeline is when a run entered which phase. Only events whose time is the
// controller's change the phase: the times of others are of other hosts' clocks, and
// arrive late when the controller was stopped.
type timeline struct {
	turns  []turn
	latest time.Time // that any event has told
}

// turn is the beginning of a phase. No turn begins before the one that it follows.
type turn struct {
	phase phase
	from  time.Time
}

// see notes the time of an event.
func (l *timeline) see(t time.Time) {
	if t.After(l.latest) {
		l.latest = t
	}
}

// enter begins a phase. Where the clock was set back, it begins with the one before,
// which then has lasted no time.
func (l *timeline) enter(p phase, t time.Time) {
	if n := len(l.turns); n > 0 && t.Before(l.turns[n-1].from) {
		t = l.turns[n-1].from
	}
	l.turns = append(l.turns, turn{p, t})
}

// seconds returns how long each phase has lasted of the time from started to ended, or to
// the latest event where the run has not ended: in all, never longer than that.
func (l *timeline) seconds(started, ended *time.Time) (s Seconds) {
	end := l.latest
	if ended != nil {
		end = *ended
	}
	for i, turn := range l.turns {
		from, to := turn.from, end
		if started != nil && from.Before(*started) {
			from = *started
		}
		if i+1 < len(l.turns) && l.turns[i+1].from.Before(end) {
			to = l.turns[i+1].from
		}
		if turn.from.IsZero() || !to.After(from) {
			continue
		}
		switch d := to.Sub(from).Seconds(); turn.phase {
		case phasePreflight:
			s.Preflight += d
		case phaseWaiting:
			s.Waiting += d
		case phaseLaunching:
			s.Launching += d
		case phaseRunning:
			s.Running += d
		case phaseBackoff:
			s.Backoff += d
		}
	}
	return s
}
