package resumable

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"
)

// ackBytes is the number of consumed bytes after which this side sends an acknowledgement, even if it has nothing else
// to send. If one of the two sides has a small buffer, this side sends an acknowledgement after fewer bytes.
const ackBytes = 256 << 10

// line is one carrier of a Conn. Conn.mu guards the fields below met.
type line struct {
	conn    *Conn
	carrier io.ReadWriteCloser
	cancel  context.CancelCauseFunc
	wake    chan struct{} // capacity 1: there may be something to send
	refuse  chan *Refused // capacity 1: send this refusal and nothing else
	met     chan struct{} // closed when the hello of the peer has been received

	hello   hello  // the hello of this side
	sent    uint64 // offset in the outgoing stream up to which this line has sent; the end counts as a byte
	ahead   uint64 // how many bytes the peer accepts beyond what its reader has consumed
	acked   uint64 // consumed bytes that the latest acknowledgement has reported
	ackFrom uint64 // so many bytes must be consumed before an acknowledgement is sent alone
	bye     bool   // this side has sent bye or is sending it
	byeSaid bool   // this side has sent bye
	peerBye bool   // the peer has sent bye
}

// nudge wakes the sender of the line.
func (l *line) nudge() {
	if l == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// received and consumed count the bytes of the incoming stream that have arrived, and that were read. The end of the
// stream counts as one byte. c.mu is held.
func (c *Conn) received() uint64 { return c.in.end + one(c.in.ended) }
func (c *Conn) consumed() uint64 { return c.in.start + one(c.in.ended && c.in.len() == 0) }

// written and taken count the bytes of the outgoing stream that were written, and that the peer has consumed. The end
// of the stream counts as one byte. c.mu is held.
func (c *Conn) written() uint64 { return c.out.end + one(c.closed) }
func (c *Conn) taken() uint64   { return c.out.start + one(c.out.endConsumed) }

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// wakeForAck wakes the sender if an acknowledgement is due. c.mu is held.
func (c *Conn) wakeForAck() {
	if l := c.link.line; l != nil && c.link.met && l.ackDue() {
		l.nudge()
	}
}

// ackDue reports whether an acknowledgement should be sent at once.
func (l *line) ackDue() bool {
	c := l.conn
	fresh := c.consumed() - l.acked
	return fresh >= l.ackFrom || fresh > 0 && c.in.ended && c.in.len() == 0
}

// next appends the frames to send to b. If there are none and beat is true, next appends a beat.
func (l *line) next(b []byte, beat bool) []byte {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.line != l || c.aborted != nil || l.bye {
		return b
	}
	n := 0
	if to := min(c.out.end, c.out.start+l.ahead); l.sent < to {
		n = int(min(to-l.sent, dataBytes))
	}
	end := c.closed && l.sent+uint64(n) == c.out.end
	if now := c.consumed(); now > l.acked && (n > 0 || end || beat || l.ackDue()) {
		b = appendFrame(b, kindAck, now)
		l.acked = now
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
	if c.out.endConsumed && c.in.ended && l.acked == c.received() {
		b = appendFrame(b, kindBye, 0)
		l.bye = true
	}
	if len(b) == 0 && beat {
		b = appendFrame(b, kindBeat, 0)
	}
	return b
}

// send writes to the carrier until ctx ends or the carrier breaks, and returns the error.
func (l *line) send(ctx context.Context, beat time.Duration) error {
	if _, err := l.carrier.Write(appendHello([]byte(preamble), l.hello)); err != nil {
		return err
	}
	select {
	case <-l.met:
	case r := <-l.refuse:
		l.carrier.Write(appendRefusal(nil, r)) // an error does not matter
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
		if idle && l.bye { // only this goroutine sends bye
			return errEnded // the peer had the time of one beat to send its own bye
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

// saidBye records that a bye has been sent, if the result of next had one. It reports whether there is nothing left to
// send or receive.
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

// finish records that the stream has ended in order. c.mu is held.
func (c *Conn) finish() {
	c.ended = true
	c.out.free()
	c.in.free()
}

// receive handles the frames from the carrier after the hello.
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

// data receives the n bytes of a data frame as they arrive. If the frame is cut off, the bytes that have arrived count.
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

// fold applies a received frame to the Conn by calling f. It does so only for the newest line: otherwise the Conn could
// contradict what this side has acknowledged on a newer line.
func (l *line) fold(f func(c *Conn) error) error {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.line != l {
		return ErrSuperseded
	}
	return f(c)
}

// take adds p to the received data.
func (l *line) take(p []byte) error {
	return l.fold(func(c *Conn) error {
		switch {
		case c.in.ended:
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
			c.in.readable.Broadcast()
		}
		c.wakeForAck()
		return nil
	})
}

// end handles the end of the incoming stream.
func (l *line) end(at uint64) error {
	return l.fold(func(c *Conn) error {
		if c.in.ended || at != c.in.end {
			return fmt.Errorf("%w: the end of the stream at %d of %d bytes", ErrProtocol, at, c.in.end)
		}
		c.in.ended = true
		c.in.readable.Broadcast()
		c.wakeForAck()
		return nil
	})
}

// ack handles an acknowledgement.
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

// free frees the outgoing data that the peer has consumed. c.mu is held.
func (c *Conn) free(to uint64) {
	c.out.drop(to)
	c.out.endConsumed = to > c.out.end
	c.out.writable.Broadcast()
	c.link.line.nudge() // the sender can send again, or must send a bye
}

// partner handles the bye of the peer. Both directions have ended then. This side still sends a bye, so that the peer
// does not have to wait.
func (l *line) partner() error {
	return l.fold(func(c *Conn) error {
		switch {
		case !c.out.endConsumed || !c.in.ended || c.in.len() > 0:
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
