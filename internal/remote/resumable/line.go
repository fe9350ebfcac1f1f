package resumable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"
)

// ackBytes is after how many consumed bytes the peer is told at the latest
// where nothing else is sent; less where a buffer is small.
const ackBytes = 256 << 10

// line is one carrier of a Conn. Conn.mu guards what follows met.
type line struct {
	conn    *Conn
	carrier io.ReadWriteCloser
	cancel  context.CancelCauseFunc
	wake    chan struct{} // holds one: there may be something to send
	refuse  chan *Refused // holds one: the peer is to be told, and no more
	met     chan struct{} // closed when the peer's hello has been taken

	hello   hello  // what this side says first
	sent    uint64 // offset in the stream out up to which it went or goes out here, with 1 for the end
	ahead   uint64 // how far beyond what its reader has consumed the peer takes bytes
	told    uint64 // what the peer was last told to be consumed
	ackFrom uint64 // how much must have been consumed for an ack of its own
	bye     bool   // this side has said bye, or is saying it
	byeSaid bool   // and has said it
	peerBye bool   // the peer has
}

// nudge makes the line look for something to send.
func (l *line) nudge() {
	if l == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// received and consumed count the stream in, with 1 for its end. c.mu is held.
func (c *Conn) received() uint64 { return c.in.end + one(c.peerEnd) }
func (c *Conn) consumed() uint64 { return c.in.start + one(c.peerEnd && c.in.len() == 0) }

// written and taken count the stream out, with 1 for its end: what there is,
// and what the peer has consumed of it. c.mu is held.
func (c *Conn) written() uint64 { return c.out.end + one(c.closed) }
func (c *Conn) taken() uint64   { return c.out.start + one(c.finAcked) }

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// wakeForAck makes the line send an ack where one is due. c.mu is held.
func (c *Conn) wakeForAck() {
	if l := c.line; l != nil && c.carried && l.ackDue() {
		l.nudge()
	}
}

// ackDue is whether the peer should be told at once what has been consumed.
func (l *line) ackDue() bool {
	c := l.conn
	fresh := c.consumed() - l.told
	return fresh >= l.ackFrom || fresh > 0 && c.peerEnd && c.in.len() == 0
}

// next appends to b what is due to be sent; a sign of life where there is
// nothing and one is due.
func (l *line) next(b []byte, beat bool) []byte {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != l || c.aborted != nil || l.bye {
		return b
	}
	n := 0
	if to := min(c.out.end, c.out.start+l.ahead); l.sent < to {
		n = int(min(to-l.sent, dataBytes))
	}
	end := c.closed && l.sent+uint64(n) == c.out.end
	if now := c.consumed(); now > l.told && (n > 0 || end || beat || l.ackDue()) {
		b = appendFrame(b, kindAck, now)
		l.told = now
	}
	if n > 0 {
		b = appendFrame(b, kindData, uint64(n))
		b = b[:len(b)+n]
		c.out.read(b[len(b)-n:], l.sent)
		l.sent += uint64(n)
	}
	if end {
		b = appendFrame(b, kindEnd, c.out.end)
		l.sent++
	}
	if c.finAcked && c.peerEnd && l.told == c.received() {
		b = appendFrame(b, kindBye, 0)
		l.bye = true
	}
	if len(b) == 0 && beat {
		b = appendFrame(b, kindBeat, 0)
	}
	return b
}

// send writes to the carrier until ctx ends or the carrier breaks, and returns
// why it does no longer.
func (l *line) send(ctx context.Context, beat time.Duration) error {
	if _, err := l.carrier.Write(appendHello([]byte(preamble), l.hello)); err != nil {
		return err
	}
	select {
	case <-l.met:
	case r := <-l.refuse:
		l.carrier.Write(appendRefusal(nil, r)) // the refusal is what counts
		return r
	case <-ctx.Done():
		return ctx.Err()
	}
	buf := make([]byte, 0, dataBytes+4*frameBytes)
	last := time.Now()
	timer := time.NewTimer(beat)
	defer timer.Stop()
	idle := false
	for ctx.Err() == nil {
		b := l.next(buf, idle)
		if len(b) > 0 {
			if _, err := l.carrier.Write(b); err != nil {
				return err
			}
			last, idle = time.Now(), false
			if l.saidBye() {
				return errEnded
			}
			continue
		}
		if idle && l.bye { // only this goroutine says bye
			return errEnded // the peer had a beat's time to say its own
		}
		select {
		case <-l.wake:
		case <-timer.C:
			left := beat - time.Since(last)
			if idle = left <= 0; idle {
				left = beat
			}
			timer.Reset(left)
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// saidBye notes that what next has given is on its way, and returns whether
// nothing is left to say or hear.
func (l *line) saidBye() bool {
	if !l.bye {
		return false
	}
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	l.byeSaid = true
	l.conn.finish()
	return l.peerBye
}

// finish notes that the stream has ended in order. c.mu is held.
func (c *Conn) finish() {
	c.ended = true
	c.out.free()
	c.in.free()
}

// receive takes the frames that come from the carrier after the hello.
func (l *line) receive(r *bufio.Reader) error {
	for {
		kind, arg, err := readFrame(r)
		if err != nil {
			return err
		}
		switch kind {
		case kindData:
			err = l.data(r, arg)
		case kindAck:
			err = l.ack(arg)
		case kindEnd:
			err = l.end(arg)
		case kindBeat:
		case kindBye:
			err = l.partner()
		case kindRefuse:
			err = readRefusal(r, arg)
		default:
			err = fmt.Errorf("%w: a frame %q", ErrProtocol, kind)
		}
		if err != nil {
			return err
		}
	}
}

// data takes the n bytes of a data frame, as they come: what arrived of a frame
// that is cut short counts.
func (l *line) data(r *bufio.Reader, n uint64) error {
	if n == 0 || n > dataBytes {
		return fmt.Errorf("%w: %d bytes in a frame of at most %d", ErrProtocol, n, dataBytes)
	}
	for n > 0 {
		if r.Buffered() == 0 {
			if _, err := r.Peek(1); err != nil {
				return cutShort(err, frameBytes)
			}
		}
		p, _ := r.Peek(int(min(n, uint64(r.Buffered()))))
		if err := l.take(p); err != nil {
			return err
		}
		r.Discard(len(p))
		n -= uint64(len(p))
	}
	return nil
}

// fold changes the Conn by what came. Only the newest line changes anything: what
// this side said on a later one to have received stays true.
func (l *line) fold(f func(c *Conn) error) error {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != l {
		return ErrSuperseded
	}
	return f(c)
}

// take adds p to what can be read.
func (l *line) take(p []byte) error {
	return l.fold(func(c *Conn) error {
		switch {
		case c.peerEnd:
			return fmt.Errorf("%w: data after the end", ErrProtocol)
		case c.aborted != nil:
			return c.aborted
		case c.closed:
			c.in.end += uint64(len(p))
			c.in.start = c.in.end
		case len(p) > c.in.room():
			return fmt.Errorf("%w: more than %d bytes ahead of the reader", ErrProtocol, c.in.limit)
		default:
			c.in.append(p)
			c.readable.Broadcast()
		}
		c.wakeForAck()
		return nil
	})
}

// end takes the end of the stream.
func (l *line) end(at uint64) error {
	return l.fold(func(c *Conn) error {
		if c.peerEnd || at != c.in.end {
			return fmt.Errorf("%w: the end of the stream at %d of %d bytes", ErrProtocol, at, c.in.end)
		}
		c.peerEnd = true
		c.readable.Broadcast()
		c.wakeForAck()
		return nil
	})
}

// ack takes the peer's word on what it has consumed.
func (l *line) ack(to uint64) error {
	return l.fold(func(c *Conn) error {
		switch {
		case c.aborted != nil:
			return c.aborted
		case to < c.taken() || to > l.sent:
			return fmt.Errorf("%w: %d bytes consumed, where %d were and %d were sent", ErrProtocol, to, c.taken(), l.sent)
		}
		c.free(to)
		return nil
	})
}

// free forgets what the peer has consumed. c.mu is held.
func (c *Conn) free(to uint64) {
	c.out.drop(to)
	c.finAcked = to > c.out.end
	c.writable.Broadcast()
	c.line.nudge() // there may have been no room, or now a bye is due
}

// partner takes the peer's bye: all has been said both ways, and this side's own bye
// only spares the peer the wait for it.
func (l *line) partner() error {
	return l.fold(func(c *Conn) error {
		switch {
		case !c.finAcked || !c.peerEnd || c.in.len() > 0:
			return fmt.Errorf("%w: a bye before both directions have ended", ErrProtocol)
		case l.byeSaid:
			return errEnded
		}
		l.peerBye = true
		c.finish()
		l.nudge()
		return nil
	})
}
