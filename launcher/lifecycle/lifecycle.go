// Package lifecycle defines the phases of a gang as the controller sees them, and the order in which they
// follow each other. Its functions have no side effects.
package lifecycle

// Phase is a phase of a gang.
type Phase int

// The phases of a gang, in their order. A gang may skip Running and Ending.
const (
	Starting   Phase = iota // agents start the ranks
	Running                 // all ranks have been started
	Ending                  // agents have been told to end the ranks
	Collecting              // no rank is left; the controller fetches the rest of the output
	Done                    // the outcome is complete
)

var phaseNames = [...]string{Starting: "starting", Running: "running", Ending: "ending", Collecting: "collecting", Done: "done"}

// String returns the name of the phase.
func (p Phase) String() string { return phaseNames[p] }

// Event is something that moves a gang from one phase to another.
type Event int

// The events of a gang.
const (
	AllStarted Event = iota // the last rank has been started
	EndOrdered              // the gang must end, because a rank failed or the run was cancelled
	RanksGone               // every host has reported that its ranks have ended, or is lost
	Collected               // the controller waits for no more output of the ranks
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

// Next returns the phase in which the gang is after the event e.
func (p Phase) Next(e Event) Phase {
	if next, ok := transitions[p][e]; ok {
		return next
	}
	return p
}

// MayEnd reports whether agents can be told to end the ranks: the gang has ranks, and nobody has told its
// agents to end them yet.
func (p Phase) MayEnd() bool { return p == Starting || p == Running }
