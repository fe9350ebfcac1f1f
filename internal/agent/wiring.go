package agent

import (
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

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/peer"
	"github.com/gangrun/gangrun/internal/agent/report"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/wire"
	"github.com/gangrun/gangrun/launcher/pmi1"
)

// wiring lets the ranks of one host find the others over PMI-1.
type wiring struct {
	server  *pmi1.Server
	size    int
	ranks   []int
	host    int // ranks here
	address string
	changed chan struct{}

	mu     sync.Mutex
	ids    map[int]int // PMI_ID: rank
	speaks sync.WaitGroup
	told   map[int]bool // ranks that unfinalized has told of

	may    []int32 // ranks that may part, as the controller knows
	sought bool    // it wants to know how the ranks stand
}

// exitWait bounds the wait for the last words of a rank that is dead already.
const exitWait = 50 * time.Millisecond

func newWiring(start *wire.Start, reports *report.Queue) *wiring {
	w := &wiring{size: int(start.Size), host: len(start.Ranks), changed: make(chan struct{}, 1), ids: map[int]int{}, told: map[int]bool{}}
	appnum := map[int]int{}
	for _, r := range start.Ranks {
		w.ranks = append(w.ranks, int(r.Rank))
		appnum[int(r.Rank)] = int(r.Appnum)
	}
	w.server = pmi1.NewServer(pmi1.Config{
		Name: "gangrun-" + strings.ReplaceAll(start.Gang, "/", "-"), Size: w.size, Universe: int(start.Universe), Ranks: w.ranks,
		Appnum:  func(rank int) int { return appnum[rank] },
		Mapping: start.Mapping,
		Enter: func(group string, puts []pmi1.Pair) {
			b := &wire.Barrier{Group: []byte(group)}
			for _, p := range puts {
				b.Puts = append(b.Puts, &wire.Pair{Key: []byte(p.Key), Value: []byte(p.Value)})
			}
			reportBarrier(reports, b)
		},
		Tell: func(n pmi1.Name) {
			reports.Add(func(m *wire.GangReply) {
				m.Names = append(m.Names, &wire.Name{Id: n.ID, Service: []byte(n.Service), Port: []byte(n.Port), Ask: n.Ask})
			})
		},
		Changed: func(int) { w.ring() },
	})
	return w
}

// ring has change tell that something may matter.
func (w *wiring) ring() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// release passes on what the controller says of a barrier.
func (w *wiring) release(b *wire.Barrier) {
	puts := make([]pmi1.Pair, len(b.Puts))
	for i, p := range b.Puts {
		puts[i] = pmi1.Pair{Key: string(p.Key), Value: string(p.Value)}
	}
	w.server.Release(string(b.Group), puts)
}

// pmiFD is the descriptor of a rank's PMI connection.
const pmiFD = 3

// equip returns what a rank needs to speak PMI: variables, and where direct a
// file that must become its descriptor pmiFD. A descriptor is lost by wrappers
// that close what they do not know, so only a program that speaks MPI itself
// gets one; others are given a port.
func (w *wiring) equip(rank, local int, direct bool) (env []string, file *os.File, err error) {
	env = []string{
		"PMI_RANK=" + strconv.Itoa(rank), "PMI_SIZE=" + strconv.Itoa(w.size),
		"MPI_LOCALNRANKS=" + strconv.Itoa(w.host), "MPI_LOCALRANKID=" + strconv.Itoa(local),
	}
	if direct {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, os.NewSyscallError("socketpair", err)
		}
		if err := unix.SetNonblock(fds[0], true); err != nil {
			return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
		}
		conn := os.NewFile(uintptr(fds[0]), "pmi")
		w.speaks.Go(func() { w.server.Serve(rank, conn) })
		return append(env, "PMI_FD="+strconv.Itoa(pmiFD)), os.NewFile(uintptr(fds[1]), "pmi"), nil
	}
	if w.address == "" {
		if w.address, err = w.server.Listen(w.admit); err != nil {
			return nil, nil, fmt.Errorf("listen for PMI: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := int(rand.Int32())
	for _, taken := w.ids[id]; taken; _, taken = w.ids[id] {
		id = int(rand.Int32())
	}
	w.ids[id] = rank
	return append(env, "PMI_PORT="+w.address, "PMI_ID="+strconv.Itoa(id)), nil, nil
}

// admit refuses whoever does not know a rank's number, which nobody but the
// rank was told, and whose process does not descend from this agent.
func (w *wiring) admit(conn *net.TCPConn, id int) (rank int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rank, ok = w.ids[id]
	if !ok || !peer.IsDescendant(conn, 0) {
		return 0, false
	}
	return rank, true
}

func (w *wiring) change() <-chan struct{} { return w.changed }

func (w *wiring) mark(e *job.Exit) {
	state := w.server.State(e.Rank)
	e.Joined = state.Joined
	if state.Aborted { // MPICH leaves it to its process manager to end who has called it
		markAbort(e, state.Code)
		e.Text = state.Message
	}
}

// settle waits a moment for the last words of a rank that has ended well but
// for MPI_Finalize: they may not have been read yet.
func (w *wiring) settle(rank int, release <-chan struct{}) {
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

// unfinalized ends a gang in which a rank has started another program after one
// that left without MPI_Finalize: the others would wait for it for ever.
func (w *wiring) unfinalized(g *gang) {
	for _, r := range w.ranks {
		if w.server.State(r).Unfinalized && !w.told[r] {
			w.told[r] = true
			text := fmt.Sprintf("rank %d on %s has started an MPI program after one that ended without MPI_Finalize", r, g.host)
			g.reports.Lines(job.Line{Source: job.SourceAgent, Host: g.host, Rank: r, Time: hostclock.Now(), Text: text})
			g.reports.Event(job.Event{Time: hostclock.Now(), Kind: job.KindStop, Host: g.host, Text: text})
		}
	}
}

func (w *wiring) aborted() (ranks []int) {
	for _, r := range w.ranks {
		if w.server.State(r).Aborted {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (w *wiring) wireup() job.Wireup {
	up := job.Wireup{MPI: job.MPIMPICH, In: []int{}}
	for _, r := range w.ranks {
		switch s := w.server.State(r); {
		case s.Joined == job.JoinedSilent:
			up.Silent = append(up.Silent, r)
		default:
			up.In = append(up.In, r)
			if s.Waiting {
				up.Waiting = append(up.Waiting, r)
			}
		}
	}
	return up
}

func (w *wiring) close() {
	w.server.Close()
	w.speaks.Wait()
}

// standing reports how the ranks stand to those of other hosts.
func reportStanding(r *report.Queue, s pmi1.Standing) {
	data, err := exact.Marshal(s)
	if err != nil {
		panic("encode a standing: " + err.Error())
	}
	r.Add(func(m *wire.GangReply) { m.Standing = data })
}

func reportBarrier(r *report.Queue, b *wire.Barrier) {
	r.Add(func(m *wire.GangReply) { m.Barriers = append(m.Barriers, b) })
}
