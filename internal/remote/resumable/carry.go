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

// refuseTime is how long a refusal may take to be written, and what a peer has said
// that takes nothing more, to be read.
const refuseTime = 2 * time.Second

// readBytes is what is read from a carrier at once.
const readBytes = 64 << 10

// Carry makes carrier carry the stream, in the place of the one that did, and
// returns when it no longer does, and why: nil where the stream has ended in
// order in both directions, ErrSuperseded where a newer carrier came, a
// *Refused where either side would not have it, the cause of ctx where that has
// ended, the error of Abort, and else what the carrier's Read or Write
// returned. The carrier is then closed and no goroutine is left.
//
// A peer that has ended in order and gone refuses the carrier that would have
// brought its last word: ErrUnknownStream is no loss to a stream that was closed
// and had nothing more to deliver.
//
// Carry does not give up on a carrier that is silent: see Heard. On a stream
// that has ended it tells so a peer that does not know it yet.
func (c *Conn) Carry(ctx context.Context, carrier io.ReadWriteCloser) error {
	s := &source{reader: carrier}
	return c.carry(ctx, carrier, s, bufio.NewReaderSize(s, readBytes), nil)
}

// CarryPending is Carry for a carrier whose stream Accept has found out. A
// carrier that the peer itself has replaced since is refused and does not
// disturb the newer one.
func (c *Conn) CarryPending(ctx context.Context, p *Pending) error {
	return c.carry(ctx, p.carrier, p.source, p.reader, &p.hello)
}

// source reads from a carrier and tells a Conn that its peer was heard.
type source struct {
	reader io.Reader
	conn   *Conn // nil until the peer has been met
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
		case errors.As(err, &r): // the receiver tells, once this is written
		case err == errEnded:
			cancel(err)
		default:
			// What the peer said before it left tells more than that it left.
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
	var told *Refused
	if errors.As(err, &told) && !told.ByPeer {
		l.refuse <- told
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

// enter makes l the newest line of c, and says what its hello is. Where the
// peer's hello is known already the two have met; where it speaks against it, c
// is left as it is.
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
	if c.line != nil {
		c.line.cancel(ErrSuperseded)
	}
	c.carried = false
	c.line = l
	c.carriers++
	l.hello = hello{
		id:         c.id,
		instance:   c.instance,
		known:      c.peer,
		generation: c.carriers,
		received:   c.received(),
		consumed:   c.consumed(),
		buffer:     uint64(c.in.limit),
	}
	l.told = l.hello.consumed
	if theirs != nil {
		l.meet(s, *theirs)
	}
	return nil
}

// greet takes the peer's hello from the carrier.
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

// meet goes by what the peer's hello says. c.mu is held.
func (l *line) meet(s *source, theirs hello) {
	c := l.conn
	c.peer, c.peerLines = theirs.instance, theirs.generation
	l.sent, l.ahead = theirs.received, theirs.buffer
	l.ackFrom = max(1, min(theirs.buffer, l.hello.buffer, 4*ackBytes)/4)
	c.free(theirs.consumed)
	c.carried = true
	s.conn = c
	c.hear()
	close(l.met)
}

// check returns why a peer that says h does not go with c, or nil. c.mu is held.
func (c *Conn) check(h hello) error {
	no := func(reason error, format string, args ...any) error {
		return &Refused{Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case h.id != c.id:
		return no(ErrUnknownStream, "stream %s here, %s there", c.id.hint(), h.id.hint())
	case c.peer != 0 && h.instance != c.peer:
		return no(ErrUnknownStream, "the peer of stream %s was started anew", c.id.hint())
	case h.known != 0 && h.known != c.instance:
		return no(ErrUnknownStream, "the peer of stream %s knows one that was here before", c.id.hint())
	case h.generation <= c.peerLines:
		return no(ErrSuperseded, "carrier %d of stream %s, after carrier %d", h.generation, c.id.hint(), c.peerLines)
	case h.received < h.consumed || h.consumed < c.taken() || h.received > c.written():
		return no(ErrUnknownStream, "the peer of stream %s received %d and consumed %d bytes, of which %d to %d are here", c.id.hint(), h.received, h.consumed, c.taken(), c.written())
	}
	return nil
}

// leave ends l's part in c.
func (c *Conn) leave(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != l {
		return
	}
	c.line = nil
	c.carried = false
}

// outcome is what Carry returns where its line ended by err.
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
