// Package wireup has what all wire-ups have in common. A wire-up is a way in which ranks find each other. Package
// wireup reports to the controller how far the ranks of this host have come with their wire-up, which ranks have called
// MPI_Abort, and which are silent singletons. Silent singletons are ranks that each run as rank 0 of 1 because they did
// not find the others. Each wire-up for an MPI library is a package in a directory of this one. The type None is the
// wire-up of ranks that find each other without gangrun's help.
package wireup

import (
	"context"
	"fmt"
	"time"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
)

// abortWait is how long a rank that has called MPI_Abort may take to end by itself. It then ends with its own exit
// code.
const abortWait = 100 * time.Millisecond

// State gives access to what a wire-up knows about the ranks of this host. Once the ranks have been started,
// its functions may be called from any goroutine.
type State struct {
	// Changed receives a value when something may have changed.
	Changed <-chan struct{}
	// Wireup returns how far the ranks have come.
	Wireup func() job.Wireup
	// Aborted returns the ranks that have called MPI_Abort.
	Aborted func() []int
	// Update is called after a value was received from Changed. It may be nil.
	Update func()
	// Request handles a request of the controller.
	Request func(*wire.GangRequest)
}

// Watch reports changes of a State to the controller.
type Watch struct {
	gang     *gang.Gang
	state    State
	single   *singletons // nil if no rank can be a silent singleton
	joined   int         // number of ranks that had joined at the last report
	aborting map[int]bool
}

// NewWatch returns a Watch. If singletons is true, the Watch also looks for silent singletons.
func NewWatch(g *gang.Gang, state State, singletons bool) *Watch {
	w := &Watch{gang: g, state: state, aborting: map[int]bool{}}
	if singletons {
		w.single = newSingletons(g)
	}
	return w
}

// Run watches the ranks and answers the controller's requests until ctx ends. If a request comes before the ranks have
// been started, Run answers it after they have been started.
func (w *Watch) Run(ctx context.Context, requests <-chan *wire.GangRequest) {
	early, ok := w.awaitReady(ctx, requests)
	if !ok {
		return
	}
	for _, r := range early {
		w.request(r)
	}
	var abort, look <-chan time.Time
	if w.single != nil {
		look = nextLook(0)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-requests:
			w.request(r)
		case <-w.state.Changed:
			if w.update() {
				abort = time.After(abortWait)
			}
		case <-abort:
			abort = nil
			w.requestAbort()
		case <-look:
			changed, again := w.single.look(w.silent())
			if changed {
				w.report(false)
			}
			look = again
		}
	}
}

// awaitReady waits until the ranks have been started. It returns the requests that arrived before that. ok is false if
// ctx ended first.
func (w *Watch) awaitReady(ctx context.Context, requests <-chan *wire.GangRequest) (early []*wire.GangRequest, ok bool) {
	for {
		select {
		case <-w.gang.Ready():
			return early, true
		case r := <-requests:
			early = append(early, r)
		case <-ctx.Done():
			return nil, false
		}
	}
}

// request handles a request of the controller.
func (w *Watch) request(r *wire.GangRequest) {
	if r.GetLook() != nil {
		w.report(true)
	} else if w.state.Request != nil {
		w.state.Request(r)
	}
}

// update sends the controller a report when the first and when the last rank of this host has
// joined, and returns whether a rank has called MPI_Abort since the last update.
func (w *Watch) update() (aborting bool) {
	if up := w.state.Wireup(); len(up.In) != w.joined && (w.joined == 0 || len(up.Silent) == 0) {
		w.joined = len(up.In)
		w.report(false)
		w.gang.NoteSharedMemory() // all ranks have mapped the shared memory by now
	}
	if w.state.Update != nil {
		w.state.Update()
	}
	for _, rank := range w.state.Aborted() {
		aborting = aborting || !w.aborting[rank]
		w.aborting[rank] = true
	}
	return aborting
}

// requestAbort asks for the end of the gang if a rank that has called MPI_Abort does not end by itself.
func (w *Watch) requestAbort() {
	for _, r := range w.gang.Ranks() {
		if _, lives := r.Living(); lives && w.aborting[r.Number()] {
			w.gang.RequestStop(fmt.Sprintf("rank %d on %s has called MPI_Abort", r.Number(), w.gang.Host))
			return
		}
	}
}

// silent returns a function that reports whether a rank has not joined.
func (w *Watch) silent() func(rank int) bool {
	if w.state.Wireup == nil {
		return func(int) bool { return true }
	}
	silent := map[int]bool{}
	for _, r := range w.state.Wireup().Silent {
		silent[r] = true
	}
	return func(rank int) bool { return silent[rank] }
}

// report reports how far the ranks have come. answer is true if the controller has asked for the report.
func (w *Watch) report(answer bool) {
	up := job.Wireup{MPI: job.MPINone, In: []int{}}
	if w.state.Wireup != nil {
		up = w.state.Wireup()
	}
	if w.single != nil {
		up.Library, up.Lasting = w.single.library, w.single.lasting
	}
	up.Answer = answer
	w.gang.Reports.Wireup(up)
}

// MarkAbort records in e that a rank has called MPI_Abort with a code. The rank then counts as ended by
// MPI_Abort, even if it was killed before it could exit.
func MarkAbort(e *job.Exit, code int) {
	e.Aborted, e.Stopped = true, false
	if e.Status == job.Signalled || e.Status == job.Exited && e.Code == 0 { // the rank's parent may have lost the code
		e.Status, e.Signal, e.Code = job.Exited, 0, code&0xff
	}
}
