package resumable

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// Pending is a fresh carrier of which it is known what stream it is to carry.
// It is to be given to CarryPending or Refuse.
type Pending struct {
	carrier io.ReadWriteCloser
	source  *source
	reader  *bufio.Reader
	hello   hello
}

// Accept reads from a fresh carrier which stream it is to carry. It returns an
// error where that does not come until ctx has ended, or is not what a peer of
// this version says; the carrier is then closed, and a peer of another version
// told.
func Accept(ctx context.Context, carrier io.ReadWriteCloser) (*Pending, error) {
	s := &source{reader: carrier}
	p := &Pending{carrier: carrier, source: s, reader: bufio.NewReaderSize(s, readBytes)}
	err := within(ctx, carrier, func() (err error) {
		p.hello, err = readHello(p.reader)
		return err
	})
	if err == nil {
		return p, nil
	}
	var r *Refused
	if errors.As(err, &r) && !r.ByPeer {
		refuse(ctx, carrier, r)
	} else {
		carrier.Close()
	}
	return nil, err
}

// ID returns the stream that the carrier is to carry.
func (p *Pending) ID() ID { return p.hello.id }

// Refuse tells the peer that there is no such stream here, with text, and
// closes the carrier. The peer's Carry returns a *Refused of ErrUnknownStream.
func (p *Pending) Refuse(ctx context.Context, text string) error {
	return refuse(ctx, p.carrier, &Refused{Reason: ErrUnknownStream, Text: text})
}

// refuse writes r where the hello is due, and closes the carrier.
func refuse(ctx context.Context, carrier io.ReadWriteCloser, r *Refused) error {
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	err := within(ctx, carrier, func() error {
		_, err := carrier.Write(appendRefusal([]byte(preamble), r))
		return err
	})
	return errors.Join(err, carrier.Close())
}

// within runs f, which ctx ends by closing the carrier.
func within(ctx context.Context, carrier io.Closer, f func() error) error {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		carrier.Close()
	})
	err := f()
	if !stop() {
		<-closed
		return context.Cause(ctx)
	}
	return err
}
