package agent

import (
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
)

// meeting is how the ranks of a gang find each other, as far as this host can
// see it.
type meeting interface {
	// change is rung when a rank has said something that may matter.
	change() <-chan struct{}
	// wireup returns how far the ranks of this host have come.
	wireup() job.Wireup
	// aborted returns the ranks that have called MPI_Abort.
	aborted() []int
	// mark adds to the end of a rank what it said before.
	mark(*job.Exit)
	// close ends it, and waits.
	close()
}

// abortWait is how long a rank that has called MPI_Abort may take to end by
// itself, with its own code.
const abortWait = 100 * time.Millisecond

// markAbort notes that a rank has called MPI_Abort. It counts as ended by that
// even where it was ended before it could end itself.
func markAbort(e *job.Exit, code int) {
	e.Aborted, e.Stopped = true, false
	if e.Status == job.Signalled || e.Status == job.Exited && e.Code == 0 { // or its parent has lost its code
		e.Status, e.Signal, e.Code = job.Exited, 0, code&0xff
	}
}

// changed is rung when a rank has said something that the controller may want
// to know.
func (g *gang) changed() <-chan struct{} {
	if g.meeting == nil {
		return nil
	}
	return g.meeting.change()
}

// rewired tells the controller when the first and when the last rank of this
// host has joined, and reports whether a rank has called MPI_Abort since.
func (g *gang) rewired() (aborting bool) {
	if up := g.wireup(); len(up.In) != g.joined && (g.joined == 0 || len(up.Silent) == 0) {
		g.joined = len(up.In)
		g.reports.Wireup(up)
		g.shared.Scan() // all of it is there by now
	}
	if g.wiring != nil {
		g.wiring.unfinalized(g)
	}
	for _, rank := range g.meeting.aborted() {
		aborting = aborting || !g.aborting[rank]
		g.aborting[rank] = true
	}
	return aborting
}

// wireup returns how far the ranks of this host have come.
func (g *gang) wireup() job.Wireup {
	up := job.Wireup{MPI: job.MPINone, In: []int{}}
	if g.meeting != nil {
		up = g.meeting.wireup()
	}
	up.Library, up.Lasting = g.library, g.lasts
	return up
}

// abort asks for the end of the gang where a rank that has called MPI_Abort
// does not end by itself.
func (g *gang) abort() {
	for _, r := range g.ranks {
		if r.child != nil && !r.child.Ended() && g.aborting[r.number] {
			g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStop, Host: g.host, Text: fmt.Sprintf("rank %d on %s has called MPI_Abort", r.number, g.host)})
			return
		}
	}
}
