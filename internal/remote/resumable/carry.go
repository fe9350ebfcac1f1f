package resumable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// refuseTime limits the time for writing a refusal. It also limits the time for reading the last data of a peer to
// which this side can no longer write.
const refuseTime = 2 * time.Second

// readBytes is how much is read from a carrier at once.
const readBytes = 64 << 10

// Carry carries the stream on carrier, which replaces the previous carrier. It returns when carrier no longer
// carries the stream. When it returns, it has closed carrier, and all its goroutines have ended. The error is
//
//   - nil if both sides have closed the stream and all data was delivered,
//   - ErrSuperseded if a newer carrier has replaced this one,
//   - a *Refused if either side has refused the carrier,
//   - the cause of ctx if ctx has ended,
//   - the error of Abort,
//   - otherwise the error of a Read or Write of the carrier.
//
// A peer that has ended the stream and forgotten it refuses a new carrier with ErrUnknownStream. This can
// happen although all data was delivered, if the confirmation of the end has not reached this side. So if this
// side has closed the stream and has nothing more to deliver, ErrUnknownStream does not mean that data was
// lost.
//
// Carry does not give up a silent carrier (see Heard). If the stream has ended and the peer does not know that
// yet, Carry confirms the end to the peer.
func (c *Conn) Carry(ctx context.Context, carrier io.ReadWriteCloser) error {
	s := &source{reader: carrier}
	return c.carry(ctx, carrier, s, bufio.NewReaderSize(s, readBytes), nil)
}

// CarryPending is like Carry, for a carrier that Accept has returned. If the peer has replaced that carrier in
// the meantime, CarryPending refuses it, and the newer carrier goes on.
func (c *Conn) CarryPending(ctx context.Context, p *Pending) error {
	return c.carry(ctx, p.carrier, p.source, p.reader, &p.hello)
}

// source reads from a carrier and records the time for a Conn.
type source struct {
	reader io.Reader
	conn   *Conn // nil until the hello of the peer has been received
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if n > 0 && s.conn != nil {
		s.conn.hear()
	}
	return n, err
}

func (c *Conn) carry(ctx context.Context, carrier io.ReadWriteCloser, s *source, r *bufio.Reader, theirs *hello) error {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &line{
		conn:    c,
		carrier: carrier,
		cancel:  cancel,
		wake:    make(chan struct{}, 1),
		refuse:  make(chan *Refused, 1),
		met:     make(chan struct{}),
	}
	if err := c.enter(l, s, theirs); err != nil {
		tell := &Refused{Reason: ErrUnknownStream, Text: "it was given up"}
		errors.As(err, &tell)
		refuse(ctx, carrier, tell)
		cancel(nil)
		return err
	}

	var closer, sender sync.WaitGroup
	closer.Go(func() {
		<-ctx.Done()
		carrier.Close()
	})
	sent := make(chan struct{})
	sender.Go(func() {
		defer close(sent)
		err := l.send(ctx, c.beat)
		var r *Refused
		switch {
		case errors.As(err, &r): // receive or greet has returned the refusal, and waits until it is sent
		case err == errEnded:
			cancel(err)
		default:
			// The peer may have sent a refusal before it closed the carrier. That says more than the error of the
			// write.
			limit := time.NewTimer(refuseTime)
			defer limit.Stop()
			select {
			case <-ctx.Done():
			case <-limit.C:
				cancel(err)
			}
		}
	})
	var err error
	if theirs == nil {
		err = l.greet(s, r)
	}
	if err == nil {
		err = l.receive(r)
	}
	var refused *Refused
	if errors.As(err, &refused) && !refused.ByPeer {
		l.refuse <- refused
		limit := time.NewTimer(refuseTime)
		select {
		case <-sent:
		case <-limit.C:
		case <-ctx.Done():
		}
		limit.Stop()
	}
	cancel(err)
	c.leave(l)
	closer.Wait()
	sender.Wait()
	return c.outcome(context.Cause(ctx))
}

// enter makes l the newest line of c and sets its hello. If the hello of the peer is known already, enter applies it.
// If that hello must be refused, enter does not change c.
func (c *Conn) enter(l *line, s *source, theirs *hello) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted != nil {
		return c.aborted
	}
	if theirs != nil {
		if err := c.check(*theirs); err != nil {
			return err
		}
	}
	if c.link.line != nil {
		c.link.line.cancel(ErrSuperseded)
	}
	c.link.met = false
	c.link.line = l
	c.link.lines++
	l.hello = hello{
		id:         c.id,
		instance:   c.instance,
		known:      c.link.peer,
		generation: c.link.lines,
		received:   c.received(),
		consumed:   c.consumed(),
		buffer:     uint64(c.in.limit),
	}
	l.acked = l.hello.consumed
	if theirs != nil {
		l.meet(s, *theirs)
	}
	return nil
}

// greet receives the hello of the peer.
func (l *line) greet(s *source, r *bufio.Reader) error {
	theirs, err := readHello(r)
	if err != nil {
		return err
	}
	return l.fold(func(c *Conn) error {
		if c.aborted != nil {
			return c.aborted
		}
		if err := c.check(theirs); err != nil {
			return err
		}
		l.meet(s, theirs)
		return nil
	})
}

// meet applies the hello of the peer to c. c.mu is held.
func (l *line) meet(s *source, theirs hello) {
	c := l.conn
	c.link.peer, c.link.peerLines = theirs.instance, theirs.generation
	l.sent, l.ahead = theirs.received, theirs.buffer
	l.ackFrom = max(1, min(theirs.buffer, l.hello.buffer, 4*ackBytes)/4)
	c.free(theirs.consumed)
	c.link.met = true
	s.conn = c
	c.hear()
	close(l.met)
}

// check returns why a peer with the hello h is refused, or nil. c.mu is held.
func (c *Conn) check(h hello) error {
	no := func(reason error, format string, args ...any) error {
		return &Refused{Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case h.id != c.id:
		return no(ErrUnknownStream, "stream %s here, %s there", c.id.hint(), h.id.hint())
	case c.link.peer != 0 && h.instance != c.link.peer:
		return no(ErrUnknownStream, "the peer of stream %s was started again", c.id.hint())
	case h.known != 0 && h.known != c.instance:
		return no(ErrUnknownStream, "the peer of stream %s knows one that was here before", c.id.hint())
	case h.generation <= c.link.peerLines:
		return no(ErrSuperseded, "carrier %d of stream %s, after carrier %d", h.generation, c.id.hint(), c.link.peerLines)
	case h.received < h.consumed || h.consumed < c.taken() || h.received > c.written():
		return no(ErrUnknownStream, "the peer of stream %s received %d and consumed %d bytes, of which %d to %d are here", c.id.hint(), h.received, h.consumed, c.taken(), c.written())
	}
	return nil
}

// leave removes l from c.
func (c *Conn) leave(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.line != l {
		return
	}
	c.link.line = nil
	c.link.met = false
}

// outcome returns the result of a Carry whose line has ended with err.
func (c *Conn) outcome(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, ErrSuperseded):
		return err
	case c.aborted != nil:
		return c.aborted
	case c.ended:
		return nil
	}
	return err
}
