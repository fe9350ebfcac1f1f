package pmi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// MPICH 3.4 to 4.1 over UCX 1.11.1 and later can hang in MPI_Finalize. In MPI_Finalize, a rank closes its connections.
// UCX's TCP transport ends each of them with a flush request that the peer's UCX must answer (uct_tcp_ep_flush). Then
// the rank waits in a barrier of PMI, and in this barrier its own UCX answers nothing (MPIDI_UCX_mpi_finalize_hook). A
// rank that arrives a moment later sends its requests to ranks that no longer answer, and waits for ever. MPICH 4.2 has
// no barrier there.
//
// A rank that waits in this barrier is released early if every peer has sent it a flush request. All messages of the
// rank have then been answered, and peers that still wait get their answer when the rank closes its connections.
//
// If both ranks have closed a connection on their side, the connection stays open and silent. Then this host alone does
// not know whether the peer waits. The controller finds out from the reports of both hosts (pmi1.Releasable).

// flushRequest is the length of a flush request in bytes: UCX's header of an active message
// (5) and of a put without data (20).
const flushRequest = 25

// The times at which ranks that wait in a barrier are checked. They are checked often at first, and later more rarely.
const (
	firstLook = 200 * time.Millisecond
	lastLook  = 2 * time.Second
)

// nextLook returns a channel that fires when ranks that have waited for that time must be checked again.
func nextLook(waited time.Duration) <-chan time.Time {
	return time.After(min(max(firstLook, waited/8), lastLook))
}

// finalizer releases ranks from the barrier of MPI_Finalize.
type finalizer struct {
	gang    *gang.Gang
	server  *pmi1.Server
	address func() string // the address of the server; "" if there is none
	woken   chan struct{}
	waited  time.Time // when the first rank began to wait in a barrier; zero while none waits

	mu      sync.Mutex
	allowed []int32 // ranks that the controller has released
	asked   bool    // the controller wants a report
}

func newFinalizer(g *gang.Gang, server *pmi1.Server, address func() string) *finalizer {
	return &finalizer{gang: g, server: server, address: address, woken: make(chan struct{}, 1)}
}

// wake makes run check the ranks soon. It is called when a rank has sent a message.
func (f *finalizer) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// allow releases the ranks that the controller has named, and makes run send a report.
func (f *finalizer) allow(ranks []int32) {
	f.mu.Lock()
	f.asked, f.allowed = true, append(f.allowed, ranks...)
	f.mu.Unlock()
	f.wake()
}

// run checks the ranks until ctx ends.
func (f *finalizer) run(ctx context.Context) {
	select {
	case <-f.gang.Ready():
	case <-ctx.Done():
		return
	}
	var look <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
			if look == nil {
				look = nextLook(0)
			}
		case <-look:
			look = f.look()
		}
	}
}

// look releases ranks to which no other rank will send anything. If this host alone cannot know that about a rank, look
// sends a report. It returns a channel that fires when the ranks must be checked again. The channel is nil if no rank
// waits.
func (f *finalizer) look() <-chan time.Time {
	f.mu.Lock()
	allowed, asked := f.allowed, f.asked
	f.allowed, f.asked = nil, false
	f.mu.Unlock()
	var here pmi1.WaitReport
	var busy []*gang.Rank
	waiting := false
	for _, r := range f.gang.Ranks() {
		pid, ok := r.Living()
		if !ok {
			continue
		}
		if !f.server.State(r.Number()).Waiting {
			busy = append(busy, r)
			continue
		}
		waiting = true
		open := f.links(pid)
		flushed, silent := slices.ContainsFunc(open, asks), slices.ContainsFunc(open, isSilent)
		if flushed && (!silent || slices.Contains(allowed, int32(r.Number()))) {
			f.server.Part(r.Number())
			continue
		}
		here.Stuck = here.Stuck || flushed
		here.Ranks = append(here.Ranks, pmi1.RankLinks{Rank: r.Number(), Waits: true, Links: open})
	}
	if asked || here.Stuck {
		f.report(here, busy)
	}
	if !waiting {
		f.waited = time.Time{}
		return nil
	}
	if f.waited.IsZero() {
		f.waited = time.Now()
	}
	return nextLook(time.Since(f.waited))
}

// report sends the controller the connections of this host's ranks. busy has the ranks that wait in no barrier.
func (f *finalizer) report(here pmi1.WaitReport, busy []*gang.Rank) {
	for _, r := range busy {
		if pid, ok := r.Living(); ok {
			here.Ranks = append(here.Ranks, pmi1.RankLinks{Rank: r.Number(), Links: f.links(pid)})
		}
	}
	data, err := exact.Marshal(here)
	if err != nil {
		panic("encode a wait report: " + err.Error()) // such a value can always be encoded
	}
	f.gang.Reports.Add(func(m *wire.GangReply) { m.Standing = data })
}

// asks reports whether the peer has sent a flush request.
func asks(l pmi1.Link) bool { return l.Asks }

// isSilent reports whether this end has received no flush request. The peer may then still send.
func isSilent(l pmi1.Link) bool { return !l.Asks }

// links returns the open connections of a rank. It looks only at those processes of the rank that use UCX.
func (f *finalizer) links(rank int) (open []pmi1.Link) {
	server := tableAddress(f.address())
	for _, pid := range append([]int{rank}, process.ListedDescendants(rank)...) {
		if some := links(ownConnections(pid), server); len(some) > 0 && mapsUCX(pid) {
			open = append(open, some...)
		}
	}
	return open
}
