package resumable

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of Options.
const (
	defaultBuffer = 4 << 20     // bytes
	defaultBeat   = time.Second // a third of the silence after which a host is suspect
)

// Options are the settings of a stream.
type Options struct {
	// ID names the stream on both sides.
	ID ID
	// Buffer is the largest number of bytes that this side keeps until the reader of the peer has consumed
	// them; 0 means 4 MiB. Write blocks when Buffer is used up. Buffer also limits how many received bytes wait
	// until somebody reads them. The smaller Buffer of the two sides counts. The memory grows as needed, and is
	// freed when the stream ends.
	Buffer int
	// Beat is how often this side sends a frame while it has no data to send. The frame shows that this side is
	// alive. 0 means one second.
	Beat time.Duration
}

// Conn is one end of a stream. Several goroutines may call its methods at the same time.
type Conn struct {
	id       ID
	instance uint64
	beat     time.Duration
	begun    time.Time
	heard    atomic.Int64 // the time since begun of the last byte from the peer; 0 if there was none

	writing sync.Mutex // locked before mu

	mu      sync.Mutex
	in      incoming
	out     outgoing
	link    link
	aborted error
	closed  bool
	// ended means that both directions have ended and that one side has told the other that
	// it has received all of it.
	ended bool
}

// incoming is the direction from the peer. Conn.mu guards it.
type incoming struct {
	window             // received and not yet read
	readable sync.Cond // there is something to read, or Read must return an error
	deadline deadline  // of Read
	ended    bool      // the end of the stream has been received
}

// outgoing is the direction to the peer. Conn.mu guards it.
type outgoing struct {
	window                // written and not yet consumed by the reader of the peer
	writable    sync.Cond // there is room, or Write must return an error
	deadline    deadline  // of Write
	endConsumed bool      // the peer has consumed the end of the stream
}

// link is what a Conn knows about its carriers and its peer. Conn.mu guards it.
type link struct {
	line      *line  // the newest carrier, or nil
	met       bool   // the hello of the peer has been received on line
	lines     uint64 // how many lines there have been
	peer      uint64 // the instance of the peer; 0 before the first hello
	peerLines uint64 // the highest generation that the peer has sent
}

var _ net.Conn = (*Conn)(nil)

// New returns one end of the stream opts.ID, without a carrier.
func New(opts Options) *Conn {
	if opts.Buffer <= 0 {
		opts.Buffer = defaultBuffer
	}
	if opts.Beat <= 0 {
		opts.Beat = defaultBeat
	}
	c := &Conn{
		id:       opts.ID,
		instance: rand.Uint64N(1<<64-1) + 1,
		beat:     opts.Beat,
		begun:    time.Now(),
		out:      outgoing{window: window{limit: opts.Buffer}},
		in:       incoming{window: window{limit: opts.Buffer}},
	}
	c.in.readable.L, c.out.writable.L = &c.mu, &c.mu
	return c
}

// ID returns the name of the stream.
func (c *Conn) ID() ID { return c.id }

// Heard returns when this side last received a byte from the peer, on any carrier. It returns the zero Time if
// this side has received nothing.
func (c *Conn) Heard() time.Time {
	if d := c.heard.Load(); d > 0 {
		return c.begun.Add(time.Duration(d))
	}
	return time.Time{}
}

func (c *Conn) hear() { c.heard.Store(int64(max(1, time.Since(c.begun)))) }

// Read reads what the peer has written, in order. It blocks while there is nothing to read, even if there is no
// carrier. Once everything was read and the peer has closed the stream, it returns io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.aborted != nil:
			return 0, c.aborted
		case c.closed:
			return 0, net.ErrClosed
		case c.in.deadline.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case c.in.len() > 0:
			n := c.in.read(p, c.in.start)
			c.in.drop(c.in.start + uint64(n))
			c.wakeForAck()
			return n, nil
		case c.in.ended:
			return 0, io.EOF
		}
		c.in.readable.Wait()
	}
}

// Write adds p to the data for the peer. It blocks while Buffer bytes are still waiting to be consumed by the peer,
// whether or not there is a carrier. Otherwise it does not wait for the peer.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock() // the data of two writers does not mix
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	done := 0
	for {
		switch {
		case c.aborted != nil:
			return done, c.aborted
		case c.closed:
			return done, net.ErrClosed
		case c.out.deadline.passed:
			return done, os.ErrDeadlineExceeded
		}
		if n := c.out.append(p[done:]); n > 0 {
			done += n
			c.link.line.nudge()
		}
		if done == len(p) {
			return done, nil
		}
		c.out.writable.Wait()
	}
}

// Close closes the stream from this side. Read and Write then return net.ErrClosed, and this side drops what
// the peer sends. The present carrier or a later carrier still delivers what was written before Close. Carry
// returns nil once the reader of the peer has consumed all of that data, and the peer has also closed the
// stream.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.aborted != nil {
		return nil
	}
	c.closed = true
	c.in.free()
	c.wakeAll()
	return nil
}

// Abort ends the stream at once and drops its buffers. Read, Write and Carry then return err, or
// net.ErrClosed if err is nil. Only the first Abort counts.
func (c *Conn) Abort(err error) {
	if err == nil {
		err = net.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted != nil {
		return
	}
	c.aborted = err
	c.in.free()
	c.out.free()
	if c.link.line != nil {
		c.link.line.cancel(err)
	}
	c.wakeAll()
}

// wakeAll wakes the readers, the writers and the sender, and clears the deadlines of a stream
// that has ended. c.mu is held.
func (c *Conn) wakeAll() {
	c.in.deadline.clear()
	c.out.deadline.clear()
	c.in.readable.Broadcast()
	c.out.writable.Broadcast()
	c.link.line.nudge()
}

// SetDeadline sets the deadlines of Read and of Write.
func (c *Conn) SetDeadline(t time.Time) error { return c.deadlines(t, true, true) }

// SetReadDeadline makes Read return os.ErrDeadlineExceeded after the time t.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.deadlines(t, true, false) }

// SetWriteDeadline makes Write return os.ErrDeadlineExceeded after the time t. The bytes that such a Write
// reports as written are sent nevertheless.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.deadlines(t, false, true) }

func (c *Conn) deadlines(t time.Time, read, write bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.aborted != nil {
		return net.ErrClosed
	}
	if read {
		c.in.deadline.set(t, &c.in.readable)
	}
	if write {
		c.out.deadline.set(t, &c.out.writable)
	}
	return nil
}

// addr is the name of a stream as a net.Addr.
type addr struct{ id ID }

// Network returns "resumable".
func (addr) Network() string { return "resumable" }

// String returns the first digits of the stream's ID.
func (a addr) String() string { return a.id.hint() }

// LocalAddr returns the name of the stream, because only its carriers have addresses.
func (c *Conn) LocalAddr() net.Addr { return addr{c.id} }

// RemoteAddr returns the name of the stream, as LocalAddr does.
func (c *Conn) RemoteAddr() net.Addr { return addr{c.id} }
