package lifecycle

import "testing"

func TestNext(t *testing.T) {
	// For each phase, this has the next phase after each event, in the order of the events.
	for phase, want := range map[Phase][4]Phase{
		Starting:   {AllStarted: Running, EndOrdered: Ending, RanksGone: Collecting, Collected: Starting},
		Running:    {AllStarted: Running, EndOrdered: Ending, RanksGone: Collecting, Collected: Running},
		Ending:     {AllStarted: Ending, EndOrdered: Ending, RanksGone: Collecting, Collected: Ending},
		Collecting: {AllStarted: Collecting, EndOrdered: Collecting, RanksGone: Collecting, Collected: Done},
		Done:       {AllStarted: Done, EndOrdered: Done, RanksGone: Done, Collected: Done},
	} {
		for event := AllStarted; event <= Collected; event++ {
			if got := phase.Next(event); got != want[event] {
				t.Errorf("%s, %s: %s, want %s", phase, event, got, want[event])
			}
		}
		if got, want := phase.MayEnd(), phase < Ending; got != want {
			t.Errorf("%s: may end %t, want %t", phase, got, want)
		}
	}
}
