package resumable

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// Pending is a new carrier whose stream is known. The caller passes it to CarryPending or calls
// Refuse.
type Pending struct {
	carrier io.ReadWriteCloser
	source  *source
	reader  *bufio.Reader
	hello   hello
}

// Accept reads the hello from a new carrier, which names the stream. If ctx ends first, or if the peer does not
// speak this version of the protocol, Accept closes the carrier and returns an error. Before that, it sends a
// refusal to a peer of another version.
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

// ID returns the name of the stream.
func (p *Pending) ID() ID { return p.hello.id }

// Refuse refuses the carrier, because this side does not have the stream, and closes the
// carrier. The peer's Carry returns a *Refused with ErrUnknownStream and text.
func (p *Pending) Refuse(ctx context.Context, text string) error {
	return refuse(ctx, p.carrier, &Refused{Reason: ErrUnknownStream, Text: text})
}

// refuse sends r in place of the hello, and closes the carrier.
func refuse(ctx context.Context, carrier io.ReadWriteCloser, r *Refused) error {
	ctx, cancel := context.WithTimeout(ctx, refuseTime)
	defer cancel()
	err := within(ctx, carrier, func() error {
		_, err := carrier.Write(appendRefusal([]byte(preamble), r))
		return err
	})
	return errors.Join(err, carrier.Close())
}

// within runs f. If ctx ends first, within closes the carrier, so that f ends.
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
