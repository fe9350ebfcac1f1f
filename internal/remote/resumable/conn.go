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

// What Options say where they say nothing.
const (
	defaultBuffer = 4 << 20     // bytes
	defaultBeat   = time.Second // a third of the silence that makes a host suspect
)

// Options are what a stream is made with.
type Options struct {
	// ID names the stream, on both sides.
	ID ID
	// Buffer is the most bytes that are kept for the peer until its reader has
	// taken them, and also the most that are taken from the peer before they
	// are read; 0 is 4 MiB. Memory grows to it with need and is given
	// back when the stream ends. Write blocks beyond it. The smaller one of the
	// two sides counts.
	Buffer int
	// Beat is after how long without a word something is sent on a carrier so
	// that the peer hears it; 0 is one second.
	Beat time.Duration
}

// Conn is one end of a stream. All its methods may be called at the same time.
type Conn struct {
	id       ID
	instance uint64
	beat     time.Duration
	begun    time.Time
	heard    atomic.Int64 // nanoseconds after begun; 0 is never

	writing sync.Mutex // before mu

	mu       sync.Mutex
	readable sync.Cond // there is something to read, or to say to readers
	writable sync.Cond // there is room, or something to say to writers
	aborted  error
	closed   bool
	// ended is whether both directions have ended and one side has told the
	// other that it knows all of it.
	ended     bool
	readBy    deadline
	writeBy   deadline
	out       window // written and not yet consumed by the peer's reader
	peerEnd   bool   // the peer's end of the stream has come
	in        window // received and not yet read
	finAcked  bool   // the peer has consumed the end of ours
	line      *line  // the newest carrier, or nil
	carried   bool   // line has met the peer
	carriers  uint64 // how many lines there have been
	peer      uint64 // the peer's instance, 0 until it has been met
	peerLines uint64 // the greatest generation heard from the peer
}

var _ net.Conn = (*Conn)(nil)

// New returns one end of the stream opts.ID, which nothing carries yet.
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
		out:      window{limit: opts.Buffer},
		in:       window{limit: opts.Buffer},
	}
	c.readable.L, c.writable.L = &c.mu, &c.mu
	return c
}

// ID returns the name of the stream.
func (c *Conn) ID() ID { return c.id }

// Heard returns when a byte last came from the peer, on whichever carrier; the
// zero time where none ever did.
func (c *Conn) Heard() time.Time {
	if d := c.heard.Load(); d > 0 {
		return c.begun.Add(time.Duration(d))
	}
	return time.Time{}
}

func (c *Conn) hear() { c.heard.Store(int64(max(1, time.Since(c.begun)))) }

// Read returns what the peer wrote, in order. It blocks while there is nothing,
// also while nothing carries the stream. It returns io.EOF after all that a
// peer wrote that has closed.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.aborted != nil:
			return 0, c.aborted
		case c.closed:
			return 0, net.ErrClosed
		case c.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case c.in.len() > 0:
			n := c.in.read(p, c.in.start)
			c.in.drop(c.in.start + uint64(n))
			c.wakeForAck()
			return n, nil
		case c.peerEnd:
			return 0, io.EOF
		}
		c.readable.Wait()
	}
}

// Write takes p for the peer. It blocks while Buffer bytes wait to be consumed,
// also while nothing carries the stream; it does not wait for the peer else.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock() // what two write at once does not mingle
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
		case c.writeBy.passed:
			return done, os.ErrDeadlineExceeded
		}
		if n := c.out.append(p[done:]); n > 0 {
			done += n
			c.line.nudge()
		}
		if done == len(p) {
			return done, nil
		}
		c.writable.Wait()
	}
}

// Close ends the stream from this side: Read and Write return net.ErrClosed,
// and what the peer sends is dropped. What was written before is still
// delivered by the Carry that is on, or by later ones: a Carry returns nil once
// the peer's reader has taken all of it and the peer has closed too.
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

// Abort ends the stream at once and drops what it holds. Read, Write and Carry
// return err, or net.ErrClosed where err is nil; the first Abort counts.
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
	if c.line != nil {
		c.line.cancel(err)
	}
	c.wakeAll()
}

// wakeAll wakes who reads, who writes and who sends, and drops the deadlines of
// a stream that is no more. c.mu is held.
func (c *Conn) wakeAll() {
	c.readBy.clear()
	c.writeBy.clear()
	c.readable.Broadcast()
	c.writable.Broadcast()
	c.line.nudge()
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.deadlines(t, true, true) }

// SetReadDeadline makes Read return os.ErrDeadlineExceeded from t on.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.deadlines(t, true, false) }

// SetWriteDeadline makes Write return os.ErrDeadlineExceeded from t on. What it
// says that it has written is written.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.deadlines(t, false, true) }

func (c *Conn) deadlines(t time.Time, read, write bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.aborted != nil {
		return net.ErrClosed
	}
	if read {
		c.readBy.set(t, &c.readable)
	}
	if write {
		c.writeBy.set(t, &c.writable)
	}
	return nil
}

// addr names the stream where a net.Addr is wanted.
type addr struct{ id ID }

// Network returns "resumable".
func (addr) Network() string { return "resumable" }

// String returns the first digits of the stream's ID.
func (a addr) String() string { return a.id.hint() }

// LocalAddr names the stream: it has no address, its carriers have.
func (c *Conn) LocalAddr() net.Addr { return addr{c.id} }

// RemoteAddr names the stream, as LocalAddr does.
func (c *Conn) RemoteAddr() net.Addr { return addr{c.id} }
