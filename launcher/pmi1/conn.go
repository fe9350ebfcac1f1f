package pmi1

import (
	"bufio"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// overlap is how long a rank's new connection waits for its last one to end: of
// two programs in sequence the kernel closes the first one's before the second
// starts, so that only our own reading of it is to be waited for.
const overlap = 5 * time.Second

// overlapLooks are the parts in which overlap is waited for: while this process is
// stopped, or gets no processor, it reads nothing either.
const overlapLooks = 25

// conn is a connection of one rank.
type conn struct {
	begun  bool // init has come
	server *Server
	peer   io.ReadWriteCloser
	in     *bufio.Reader
	rank   *rank
	gone   chan struct{} // closed when it is read no more
	left   chan struct{} // closed when it is not the rank's connection any more

	writing sync.Mutex
	out     []byte

	// due are barriers to be answered; whoever ends a barrier must not wait for a
	// rank that does not read. Both are guarded by the server's mu.
	due  []waiter
	wake chan struct{}

	// What only the serving goroutine knows.
	request message
	spawn   spawn
}

// spawn is a command that a rank sends in several lines: MPI_Comm_spawn, which is refused.
type spawn struct {
	open      bool // within a command, from mcmd= to endcmd
	got, want int  // commands
	name      string
}

func newConn(s *Server, peer io.ReadWriteCloser) *conn {
	return &conn{
		server: s, peer: peer,
		in:   bufio.NewReaderSize(peer, maxLine),
		gone: make(chan struct{}),
		left: make(chan struct{}),
		wake: make(chan struct{}, 1),
	}
}

// serve speaks with a rank until it is done.
func (s *Server) serve(c *conn, rank int) {
	if !s.attach(c, rank) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.answerDue()
	}()
	for c.next() {
	}
	c.peer.Close()
	close(c.gone)
	<-done
	s.detach(c)
}

// attach makes c the connection of a rank, after its last one.
func (s *Server) attach(c *conn, number int) bool {
	look := time.NewTicker(overlap / overlapLooks)
	defer look.Stop()
	for looks := 0; ; {
		s.mu.Lock()
		r := s.ranks[number]
		if s.closed || r == nil {
			s.mu.Unlock()
			return false
		}
		old := r.conn
		if old == nil {
			c.rank, r.conn = r, c
			s.mu.Unlock()
			return true
		}
		finalized := r.state.Finalized
		s.mu.Unlock()
		if looks > overlapLooks {
			return false
		}
		if finalized {
			old.peer.Close()
		}
		select {
		case <-old.left:
		case <-look.C:
			looks++
		case <-s.closing:
			return false
		}
	}
}

func (s *Server) detach(c *conn) {
	s.mu.Lock()
	waited := c.rank.state.Waiting
	s.leave(c.rank, c)
	c.rank.conn = nil
	s.mu.Unlock()
	close(c.left)
	if waited {
		s.changed(c.rank)
	}
}

// next reads one line and answers it; false means that it was the last.
func (c *conn) next() bool {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return false // the end, or a line that is too long
	}
	line = line[:len(line)-1]
	if c.spawn.open {
		return c.spawnLine(line)
	}
	if c.request.parse(line) != nil {
		return false
	}
	return c.handle(&c.request)
}

// answerLater answers a barrier from the connection's own goroutine. The
// server's mu is held.
func (c *conn) answerLater(w waiter) {
	c.due = append(c.due, w)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// answerDue answers barriers until the connection is served no more.
func (c *conn) answerDue() {
	var due []waiter
	for {
		select {
		case <-c.wake:
		case <-c.gone:
			return
		}
		c.server.mu.Lock()
		due, c.due = c.due, due[:0]
		c.server.mu.Unlock()
		for _, w := range due {
			answer := []string{"cmd=barrier_out rc=0"}
			if w.tagged {
				answer = append(answer, " tag=", strconv.Itoa(w.tag))
			}
			if !c.say(answer...) {
				return
			}
		}
	}
}

// say writes one line, made of the parts; false means that the peer is gone.
func (c *conn) say(parts ...string) bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out = c.out[:0]
	for _, part := range parts {
		c.out = append(c.out, part...)
	}
	c.out = append(c.out, '\n')
	_, err := c.peer.Write(c.out)
	return err == nil
}

// set changes the rank's state.
func (c *conn) set(change func(*State)) {
	c.server.mu.Lock()
	before := c.rank.state
	change(&c.rank.state)
	c.rank.state.Finalized = c.rank.state.Joined == job.JoinedFinalized
	changed := before != c.rank.state
	c.server.mu.Unlock()
	if changed {
		c.server.changed(c.rank)
	}
}
