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

// phaseOf returns the phase as which the time in a state counts.
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

// timeline records when a run entered each phase. Only events with the controller's own time change
// the phase. The times of others come from the clocks of other hosts, and such events arrive late
// if the controller was stopped.
type timeline struct {
	turns  []turn
	latest time.Time // the latest time of any event
}

// turn is the beginning of a phase. No turn begins before the one before it in the list.
type turn struct {
	phase phase
	from  time.Time
}

// see records the time of an event.
func (l *timeline) see(t time.Time) {
	if t.After(l.latest) {
		l.latest = t
	}
}

// enter begins a phase. If the clock was set back, the phase begins at the same time as the one
// before, which then counts as having taken no time.
func (l *timeline) enter(p phase, t time.Time) {
	if n := len(l.turns); n > 0 && t.Before(l.turns[n-1].from) {
		t = l.turns[n-1].from
	}
	l.turns = append(l.turns, turn{p, t})
}

// seconds returns how long the run was in each phase, from started to ended or, if it has not
// ended, to the latest event. The sum is never longer than that.
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
