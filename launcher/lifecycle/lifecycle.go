// Package lifecycle has the phases of a gang, from the controller's side, and decides which
// phase follows which. It has no effects.
package lifecycle

// Phase is a phase of a gang.
type Phase int

// The phases of a gang, in their order. Ending may be skipped, and so may Running.
const (
	Starting   Phase = iota // agents start the ranks
	Running                 // all ranks have been started
	Ending                  // agents have the order to end the ranks
	Collecting              // no rank is left; the rest of their output is fetched
	Done                    // the outcome is complete
)

var phaseNames = [...]string{Starting: "starting", Running: "running", Ending: "ending", Collecting: "collecting", Done: "done"}

// String returns the name of the phase.
func (p Phase) String() string { return phaseNames[p] }

// Event is what moves a gang from one phase to another.
type Event int

// The events of a gang.
const (
	AllStarted Event = iota // the last rank has been started
	EndOrdered              // the gang is to end: a rank failed, or the run was cancelled
	RanksGone               // each host has reported the end of its ranks, or is lost
	Collected               // nothing more of the ranks' output is waited for
)

var eventNames = [...]string{AllStarted: "all started", EndOrdered: "end ordered", RanksGone: "ranks gone", Collected: "collected"}

// String returns the name of the event.
func (e Event) String() string { return eventNames[e] }

// transitions has the phase that follows each phase on each event. An event that is missing
// changes nothing in that phase.
var transitions = map[Phase]map[Event]Phase{
	Starting:   {AllStarted: Running, EndOrdered: Ending, RanksGone: Collecting},
	Running:    {EndOrdered: Ending, RanksGone: Collecting},
	Ending:     {RanksGone: Collecting},
	Collecting: {Collected: Done},
}

// Next returns the phase after an event.
func (p Phase) Next(e Event) Phase {
	if next, ok := transitions[p][e]; ok {
		return next
	}
	return p
}

// MayEnd reports whether the gang can still be ordered to end: it has ranks, and there was
// no order yet.
func (p Phase) MayEnd() bool { return p == Starting || p == Running }
