package pmi1

import (
	"io"
	"net"
	"slices"
	"sync"

	"github.com/gangrun/gangrun/internal/job"
)

// Config describes the gang of a Server.
type Config struct {
	Name string // name of the key-value store: at most 256 bytes, without spaces
	Size int    // how many ranks the gang has
	// Universe is the value of MPI_UNIVERSE_SIZE: a number of ranks, -1 for no limit (INFINITE), or 0 for Size.
	Universe int
	Ranks    []int // the ranks of this host
	// Appnum returns the number of the program that a rank runs. If Appnum is nil, the number is 0 for all
	// ranks.
	Appnum func(rank int) int
	// Mapping is the value of PMI_process_mapping; empty means none.
	Mapping string
	// Enter is called when all ranks of this host that are in a group have entered a barrier of the group. The
	// group "" has all ranks. entries has what these ranks have put since the previous barrier. Enter must
	// arrange that Release is called, immediately or later. Calls of Enter do not overlap. Enter is not called
	// for a group if all of its ranks are on this host.
	Enter func(group string, entries []Pair)
	// ShareName is called when a rank of this host has published, withdrawn or looked up a name, if the gang has
	// ranks on other hosts. ShareName must arrange calls of ReceiveName:
	//   - for a published or withdrawn name, on the servers of the other hosts and then on this Server;
	//   - for a name that was looked up, only on this Server.
	// ShareName must not block.
	ShareName func(Name)
	// Changed is called after a rank's state has changed. It must not block. It may be nil.
	Changed func(rank int)
}

// State is the state of a rank, as far as the server has seen it.
type State struct {
	Joined    job.Joined
	Waiting   bool   // the rank waits in a barrier
	Passed    bool   // the rank has passed a barrier of all ranks since MPI_Init, or there is no other rank
	Aborted   bool   // the rank has called MPI_Abort
	Code      int    // exit code that was passed to MPI_Abort; it may be any int
	Message   string // message of the abort; empty if there was none
	Finalized bool   // Joined is job.JoinedFinalized
	// Unfinalized is true if a program of the rank has ended without MPI_Finalize and another
	// program of the rank has called MPI_Init since.
	Unfinalized bool
}

// Server serves the ranks of one host.
type Server struct {
	config  Config
	closing chan struct{}
	serving sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	ranks    map[int]*rank
	store    *store
	names    names
	pending  map[int64]chan struct{} // for each name that the other hosts have not confirmed yet, by ID
	lastID   int
	barriers map[string]*barrier
	entries  []entering // barriers that Enter has yet to report
	calling  bool
	open     map[io.Closer]struct{} // connections and listeners
}

// rank is one rank of this host.
type rank struct {
	number int
	state  State
	conn   *conn // the present connection of the rank
	in     int   // number of barriers in which the rank waits
}

// NewServer returns a Server. The Server serves nobody before Serve or Listen is called.
func NewServer(config Config) *Server {
	s := &Server{
		config:   config,
		closing:  make(chan struct{}),
		ranks:    map[int]*rank{},
		names:    names{},
		pending:  map[int64]chan struct{}{},
		barriers: map[string]*barrier{},
		open:     map[io.Closer]struct{}{},
	}
	for _, n := range config.Ranks {
		s.ranks[n] = &rank{number: n, state: State{Joined: job.JoinedSilent}}
	}
	s.store = newStore(len(s.ranks) < config.Size)
	return s
}

// State returns the state of a rank, or the zero State if the rank is not on this host.
func (s *Server) State(rank int) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.ranks[rank]; r != nil {
		return r.state
	}
	return State{}
}

// ReceiveName receives a name from another host, or a name of this host after all other hosts have received it.
func (s *Server) ReceiveName(n Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch known := s.pending[n.ID]; {
	case known != nil:
		close(known)
		delete(s.pending, n.ID)
	case n.Ask:
	case n.Port == "":
		delete(s.names, n.Service)
	default:
		s.names[n.Service] = entry{value: n.Port, owner: elsewhere}
	}
}

// shareName sends a name to the other hosts. It returns when they have received the name, or when Close is called. s.mu
// must not be held.
func (s *Server) shareName(n Name) {
	if s.config.ShareName == nil || !s.store.shared {
		return
	}
	known := make(chan struct{})
	s.mu.Lock()
	s.lastID++
	n.ID = int64(s.lastID)*int64(s.config.Size) + int64(slices.Min(s.config.Ranks)) // no other host uses this ID
	s.pending[n.ID] = known
	s.mu.Unlock()
	s.config.ShareName(n)
	select {
	case <-known:
	case <-s.closing:
	}
}

// Close stops listening, closes every connection, and waits until the Server no longer serves
// any rank. It must not be called from Enter or Changed.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	all := make([]io.Closer, 0, len(s.open))
	for c := range s.open {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
	s.serving.Wait()
}

// begin records that a goroutine will use c, so that Close closes c. If the server is closed already, begin closes c
// and returns false.
func (s *Server) begin(c io.Closer) bool {
	s.mu.Lock()
	if !s.closed {
		s.open[c] = struct{}{}
		s.serving.Add(1)
		s.mu.Unlock()
		return true
	}
	s.mu.Unlock()
	c.Close()
	return false
}

func (s *Server) end(c io.Closer) {
	c.Close()
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.serving.Done()
}

// Serve serves one rank over conn until the rank ends or violates the protocol, or until Close is called. It
// then closes conn. A rank uses one connection at a time. If the rank still has another connection, Serve waits
// a short time until that connection ends. The method Close of conn must interrupt a Read or Write that blocks.
func (s *Server) Serve(rank int, conn io.ReadWriteCloser) {
	if !s.begin(conn) {
		return
	}
	defer s.end(conn)
	s.serve(newConn(s, conn), rank)
}

// Listen starts to accept connections of ranks that use PMI_PORT, on a free port of 127.0.0.1, and returns the
// address. The Server accepts connections until Close is called. admit returns the rank of the peer that calls
// itself id. If admit returns false, the Server refuses the peer. Several goroutines may call admit at the same
// time.
func (s *Server) Listen(admit func(conn *net.TCPConn, id int) (rank int, ok bool)) (string, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	if !s.begin(listener) {
		return "", net.ErrClosed
	}
	go func() {
		defer s.end(listener)
		s.accept(listener, admit)
	}()
	return address, nil
}

// locals returns the ranks of this host that belong to a group. others is true if ranks on other hosts belong to the
// group, too.
func (s *Server) locals(g group) (here []*rank, others bool) {
	if g.world || g.node {
		for _, r := range s.ranks {
			here = append(here, r)
		}
		return here, g.world && len(here) < s.config.Size
	}
	for _, n := range g.members {
		if r := s.ranks[n]; r != nil {
			here = append(here, r)
		}
	}
	return here, len(here) < len(g.members)
}

// changed calls Config.Changed for ranks whose states have changed. s.mu must not be held.
func (s *Server) changed(ranks ...*rank) {
	if s.config.Changed == nil {
		return
	}
	slices.SortFunc(ranks, func(a, b *rank) int { return a.number - b.number })
	for _, r := range ranks {
		s.config.Changed(r.number)
	}
}
