// Package pmi lets the ranks of MPICH find each other over PMI-1. Each rank of this host speaks to a server in
// the agent. The controller passes messages between the servers of the hosts.
package pmi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/agent/peer"
	"github.com/gangrun/gangrun/internal/agent/wireup"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// Wireup implements gang.Wireup over PMI-1.
type Wireup struct {
	gang     *gang.Gang
	server   *pmi1.Server
	watch    *wireup.Watch
	finalize *finalizer
	changed  chan struct{} // receives a value when a rank has sent a message that may matter

	serving  sync.WaitGroup   // goroutines that serve connections of ranks
	released map[string]int64 // number of the newest release of each group
	reported map[int]bool     // ranks for which checkFinalized has asked for the end
	native   map[string]bool  // whether a program, by its path, speaks PMI itself

	mu      sync.Mutex
	address string      // the address at which ranks without a descriptor reach the server
	ids     map[int]int // maps each PMI_ID to its rank
}

// exitWait limits the wait for the last message of a rank that has exited.
const exitWait = 50 * time.Millisecond

// New returns the wire-up of a gang.
func New(g *gang.Gang) *Wireup {
	w := &Wireup{
		gang: g, changed: make(chan struct{}, 1),
		released: map[string]int64{}, reported: map[int]bool{}, native: map[string]bool{}, ids: map[int]int{},
	}
	w.server = pmi1.NewServer(w.config())
	w.finalize = newFinalizer(g, w.server, w.listenAddress)
	w.watch = wireup.NewWatch(g, wireup.State{
		Changed: w.changed, Wireup: w.state, Aborted: w.aborted, Update: w.update, Request: w.request,
	}, true)
	return w
}

// config describes the ranks of this host to the server. It makes the controller pass the messages of the server to the
// other hosts.
func (w *Wireup) config() pmi1.Config {
	start := w.gang.Start
	appnum := map[int]int{}
	for _, r := range start.Ranks {
		appnum[int(r.Rank)] = int(r.Appnum)
	}
	return pmi1.Config{
		Name: "gangrun-" + strings.ReplaceAll(start.Gang, "/", "-"), Size: int(start.Size), Universe: int(start.Universe), Ranks: w.ranks(),
		Appnum:  func(rank int) int { return appnum[rank] },
		Mapping: start.Mapping,
		Enter: func(group string, puts []pmi1.Pair) {
			b := &wire.Barrier{Group: []byte(group)}
			for _, p := range puts {
				b.Puts = append(b.Puts, &wire.Pair{Key: []byte(p.Key), Value: []byte(p.Value)})
			}
			w.gang.Reports.Add(func(m *wire.GangReply) { m.Barriers = append(m.Barriers, b) })
		},
		ShareName: func(n pmi1.Name) {
			w.gang.Reports.Add(func(m *wire.GangReply) {
				m.Names = append(m.Names, &wire.Name{Id: n.ID, Service: []byte(n.Service), Port: []byte(n.Port), Ask: n.Ask})
			})
		},
		Changed: func(int) {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		},
	}
}

// ranks returns the numbers of this host's ranks.
func (w *Wireup) ranks() (numbers []int) {
	for _, r := range w.gang.Start.Ranks {
		numbers = append(numbers, int(r.Rank))
	}
	return numbers
}

// Serve implements gang.Wireup.
func (w *Wireup) Serve(ctx context.Context, requests <-chan *wire.GangRequest) {
	var finalizing sync.WaitGroup
	finalizing.Go(func() { w.finalize.run(ctx) })
	w.watch.Run(ctx, requests)
	finalizing.Wait()
	w.server.Close()
	w.serving.Wait()
}

// request handles a request of the controller.
func (w *Wireup) request(r *wire.GangRequest) {
	switch {
	case r.GetRelease() != nil:
		if b := r.GetRelease(); b.Number > w.released[string(b.Group)] {
			w.released[string(b.Group)] = b.Number
			w.release(b)
		}
	case r.GetPart() != nil:
		w.finalize.allow(r.GetPart().Ranks)
	case r.GetName() != nil:
		n := r.GetName()
		w.server.ReceiveName(pmi1.Name{ID: n.Id, Service: string(n.Service), Port: string(n.Port), Ask: n.Ask})
	}
}

// release tells the server that every host has entered a barrier, and passes on what the ranks of these hosts have put.
func (w *Wireup) release(b *wire.Barrier) {
	puts := make([]pmi1.Pair, len(b.Puts))
	for i, p := range b.Puts {
		puts[i] = pmi1.Pair{Key: string(p.Key), Value: string(p.Value)}
	}
	w.server.Release(string(b.Group), puts)
}

// pmiFD is the descriptor of a rank's PMI connection.
const pmiFD = 3

// Equip implements gang.Wireup. A program that uses MPI itself inherits a connection to the server. Any other
// program gets only the address of the server, because it may be a wrapper that closes descriptors which it
// does not know.
func (w *Wireup) Equip(c *gang.Command) error {
	rank := c.Rank.Number()
	env := []string{
		"PMI_RANK=" + strconv.Itoa(rank), "PMI_SIZE=" + strconv.Itoa(int(w.gang.Start.Size)),
		"MPI_LOCALNRANKS=" + strconv.Itoa(len(w.gang.Start.Ranks)), "MPI_LOCALRANKID=" + strconv.Itoa(c.Local),
	}
	if w.speaksPMI(c) {
		file, err := w.connect(rank)
		if err != nil {
			return err
		}
		c.Files = append(c.Files, file)
		c.Env = environ.Overlay(c.Env, env, []string{"PMI_FD=" + strconv.Itoa(pmiFD)})
		return nil
	}
	address, err := w.listen()
	if err != nil {
		return err
	}
	c.Env = environ.Overlay(c.Env, env, []string{"PMI_PORT=" + address, "PMI_ID=" + strconv.Itoa(w.newID(rank))})
	return nil
}

// speaksPMI reports whether a command's program itself uses MPICH, and starts no other program that does.
func (w *Wireup) speaksPMI(c *gang.Command) bool {
	native, known := w.native[c.Path]
	if !known {
		mpi, _ := mpilib.Of(c.Path, c.Env)
		native = mpi == job.MPIMPICH
		w.native[c.Path] = native
	}
	return native
}

// connect serves a rank over a socket pair, and returns the rank's end.
func (w *Wireup) connect(rank int) (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	conn := os.NewFile(uintptr(fds[0]), "pmi")
	w.serving.Go(func() { w.server.Serve(rank, conn) })
	return os.NewFile(uintptr(fds[1]), "pmi"), nil
}

// listen returns the address at which the server takes connections.
func (w *Wireup) listen() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.address == "" {
		address, err := w.server.Listen(w.rankOf)
		if err != nil {
			return "", fmt.Errorf("listen for PMI: %w", err)
		}
		w.address = address
	}
	return w.address, nil
}

// listenAddress returns the address at which the server accepts connections. It returns "" if no rank has needed an
// address.
func (w *Wireup) listenAddress() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.address
}

// newID returns a random number that no other rank gets. The server recognises the rank by that number.
func (w *Wireup) newID(rank int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := int(rand.Int32())
	for _, taken := w.ids[id]; taken; _, taken = w.ids[id] {
		id = int(rand.Int32())
	}
	w.ids[id] = rank
	return id
}

// rankOf returns the rank that a connection belongs to. It returns false if id is not a rank's, or
// if the process at the other end does not descend from this agent.
func (w *Wireup) rankOf(conn *net.TCPConn, id int) (rank int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rank, ok = w.ids[id]
	if !ok || !peer.IsDescendant(conn, 0) {
		return 0, false
	}
	return rank, true
}

// Phase implements gang.Wireup.
func (w *Wireup) Phase(rank int) job.RankPhase {
	switch s := w.server.State(rank); {
	case s.Joined == job.JoinedSilent:
		return job.PhaseUnknown
	case s.Finalized:
		return job.PhaseLeft
	case !s.Passed:
		return job.PhaseInit
	case s.Waiting:
		return job.PhaseBarrier
	}
	return job.PhaseWorking
}

// Mark implements gang.Wireup.
func (w *Wireup) Mark(e *job.Exit) {
	state := w.server.State(e.Rank)
	e.Joined = state.Joined
	if state.Aborted { // MPICH expects that its process manager ends the rank
		wireup.MarkAbort(e, state.Code)
		e.Text = state.Message
	}
}

// Settle implements gang.Wireup. The server may not have read the last message of a rank yet. If the rank has
// called MPI_Init, Settle waits for the message of its MPI_Finalize or MPI_Abort.
func (w *Wireup) Settle(rank int, release <-chan struct{}) {
	for range exitWait / time.Millisecond {
		if s := w.server.State(rank); s.Aborted || s.Joined != job.JoinedInit {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-release:
			return
		}
	}
}

// update is called when a rank has sent a message.
func (w *Wireup) update() {
	w.checkFinalized()
	w.finalize.wake()
}

// checkFinalized asks for the end of a gang if a rank has started another MPI program after a program that ended
// without MPI_Finalize. The other ranks would wait forever for that rank.
func (w *Wireup) checkFinalized() {
	for _, r := range w.ranks() {
		if w.server.State(r).Unfinalized && !w.reported[r] {
			w.reported[r] = true
			w.gang.RequestStopFor(r, job.ReasonNoFinalize, fmt.Sprintf("rank %d on %s has started an MPI program after one that ended without MPI_Finalize", r, w.gang.Host))
		}
	}
}

func (w *Wireup) aborted() (ranks []int) {
	for _, r := range w.ranks() {
		if w.server.State(r).Aborted {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// state returns how far the ranks of this host have come.
func (w *Wireup) state() job.Wireup {
	up := job.Wireup{MPI: job.MPIMPICH, In: []int{}}
	for _, r := range w.ranks() {
		s := w.server.State(r)
		if s.Joined == job.JoinedSilent {
			up.Silent = append(up.Silent, r)
			continue
		}
		up.In = append(up.In, r)
		if s.Waiting {
			up.Waiting = append(up.Waiting, r)
		}
	}
	return up
}
