package pmi1

import (
	"bufio"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// overlap is how long a new connection of a rank waits for the end of the previous one. If a rank runs two programs in
// sequence, the kernel closes the first connection before the second program starts. So this process only has to read
// the end of the first connection.
const overlap = 5 * time.Second

// overlapLooks is the number of parts into which overlap is divided. If this process does not run for a while, it
// counts only one part for that time.
const overlapLooks = 25

// conn is a connection of one rank.
type conn struct {
	begun  bool // the command init has been received
	server *Server
	peer   io.ReadWriteCloser
	in     *bufio.Reader
	rank   *rank
	gone   chan struct{} // closed when the connection is no longer read
	left   chan struct{} // closed when this is no longer the connection of the rank

	writing sync.Mutex
	out     []byte

	// due has the barriers that must be answered. Each connection answers its own barriers, so that a rank that does
	// not read does not delay the others. The server's mu guards due and wake.
	due  []waiter
	wake chan struct{}

	// Only the goroutine that serves the connection uses the fields below.
	request message
	spawn   spawn
}

// spawn is a command of several lines by which a rank calls MPI_Comm_spawn. The Server refuses it.
type spawn struct {
	open      bool // between mcmd= and endcmd
	got, want int  // how many commands have come, and how many there will be
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

// serve serves a connection of a rank until the connection ends.
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

// attach makes c the connection of a rank, after the previous connection has ended.
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

// next reads and answers one line. It returns false if no line can follow.
func (c *conn) next() bool {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return false // the end of the stream, or a line that is too long
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

// answerLater lets the connection's own goroutine answer a barrier. The server's mu is held.
func (c *conn) answerLater(w waiter) {
	c.due = append(c.due, w)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// answerDue answers barriers until the connection ends.
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

// say writes the parts as one line. It returns false if the connection is broken.
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

// set changes the rank's state by calling change.
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
