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

// phaseOf returns the phase to which the time in a state belongs.
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

// timeline records when a run entered each phase. Only events that have the time of the controller's clock
// change the phase. Other events have the times of other hosts' clocks, and arrive late if the controller was
// stopped.
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

// enter begins a phase. If the clock was set back, the phase begins at the same time as the one before. The
// earlier phase then counts as having taken no time.
func (l *timeline) enter(p phase, t time.Time) {
	if n := len(l.turns); n > 0 && t.Before(l.turns[n-1].from) {
		t = l.turns[n-1].from
	}
	l.turns = append(l.turns, turn{p, t})
}

// Phase is a period during which a run was in the phase called Name.
type Phase struct {
	Name     string // preflight, waiting, launching, running or back-off
	From, To time.Time
}

// phaseNames are the names of phases for people.
var phaseNames = [...]string{phasePreflight: "preflight", phaseWaiting: "waiting", phaseLaunching: "launching", phaseRunning: "running", phaseBackoff: "back-off"}

// Phases returns the phases of the run so far, in order. There may be gaps between them. If the run has not
// ended, the last phase ends at the time of the latest event.
func (f *Folder) Phases() (all []Phase) {
	f.times.each(f.report.Started, f.report.Ended, func(p phase, from, to time.Time) {
		if n := len(all); n > 0 && all[n-1].Name == phaseNames[p] && all[n-1].To.Equal(from) {
			all[n-1].To = to
			return
		}
		all = append(all, Phase{phaseNames[p], from, to})
	})
	return all
}

// seconds returns how long the run was in each phase, from started to ended. If the run has not ended, it
// counts until the time of the latest event. The sum is never longer than this period.
func (l *timeline) seconds(started, ended *time.Time) (s Seconds) {
	l.each(started, ended, func(p phase, from, to time.Time) {
		switch d := to.Sub(from).Seconds(); p {
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
	})
	return s
}

// each calls do for each phase that took time.
func (l *timeline) each(started, ended *time.Time, do func(p phase, from, to time.Time)) {
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
		if turn.phase != phaseNone && !turn.from.IsZero() && to.After(from) {
			do(turn.phase, from, to)
		}
	}
}
