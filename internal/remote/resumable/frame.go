package resumable

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// The kinds of frames, with their arguments.
const (
	kindHello  = 'H' // bytes of the body, a hello
	kindRefuse = 'R' // bytes of the body: a code and a text
	kindData   = 'D' // bytes of the body, the next ones of the stream
	kindAck    = 'A' // bytes of the stream that the reader consumed
	kindEnd    = 'E' // bytes of the stream in all; none follow
	kindBeat   = 'B' // nothing
	kindBye    = 'Z' // nothing: both directions have ended, no frame follows
)

const (
	version      = 1
	magic        = "gangrun\x00" // no text begins with these bytes
	preamble     = magic + string(rune(version))
	frameBytes   = 1 + 8
	helloBytes   = 16 + 6*8
	dataBytes    = 64 << 10 // the size limit of a data frame
	refusalBytes = 1 << 10  // the size limit of the body of a refusal
	quoteBytes   = 200      // how much an error quotes of data that is not a preamble
)

// hello is the first frame of each side on a carrier.
type hello struct {
	id ID
	// instance identifies the Conn of the sender. known identifies the Conn of the sender's peer, or is 0.
	instance, known uint64
	// generation is the number of carriers that the sender has had.
	generation uint64
	// received is the number of bytes that have arrived at the sender of this hello. consumed is the number of those
	// bytes that were read there. Both count the end of the stream as one byte.
	received, consumed uint64
	// buffer is how many bytes the sender accepts before they are read.
	buffer uint64
}

func appendFrame(b []byte, kind byte, arg uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, kind), arg)
}

func appendHello(b []byte, h hello) []byte {
	b = appendFrame(b, kindHello, helloBytes)
	b = append(b, h.id[:]...)
	for _, n := range []uint64{h.instance, h.known, h.generation, h.received, h.consumed, h.buffer} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func appendRefusal(b []byte, r *Refused) []byte {
	text := r.Text[:min(len(r.Text), refusalBytes-1)]
	b = appendFrame(b, kindRefuse, uint64(1+len(text)))
	return append(append(b, r.code()), text...)
}

// readFrame reads the kind and the argument of the next frame.
func readFrame(r *bufio.Reader) (kind byte, arg uint64, err error) {
	head, err := r.Peek(frameBytes)
	if err != nil {
		return 0, 0, cutShort(err, len(head))
	}
	kind, arg = head[0], binary.BigEndian.Uint64(head[1:])
	r.Discard(frameBytes)
	return kind, arg, nil
}

// cutShort returns the error of a read that ended with err after n bytes of a frame.
func cutShort(err error, n int) error {
	if err == io.EOF && n > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readHello reads the preamble and the hello that begin a carrier.
func readHello(r *bufio.Reader) (hello, error) {
	theirs, err := readPreamble(r)
	if err != nil {
		return hello{}, err
	}
	kind, arg, err := readFrame(r)
	switch {
	case err != nil:
		return hello{}, err
	case kind == kindRefuse:
		return hello{}, readRefusal(r, arg)
	case theirs != version:
		return hello{}, &Refused{Reason: ErrVersion, Text: fmt.Sprintf("version %d here, %d there: let both sides be the same gangrun", version, theirs)}
	case kind != kindHello || arg != helloBytes:
		return hello{}, fmt.Errorf("%w: a frame %q of %d in place of the hello", ErrProtocol, kind, arg)
	}
	body, err := r.Peek(helloBytes)
	if err != nil {
		return hello{}, cutShort(err, frameBytes)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(body[16+8*i:]) }
	h := hello{id: ID(body[:16]), instance: n(0), known: n(1), generation: n(2), received: n(3), consumed: n(4), buffer: n(5)}
	r.Discard(helloBytes)
	if h.instance == 0 || h.generation == 0 || h.buffer == 0 {
		return hello{}, fmt.Errorf("%w: a hello with instance %d, generation %d, buffer %d", ErrProtocol, h.instance, h.generation, h.buffer)
	}
	return h, nil
}

// readPreamble returns the version of the peer. It fails at the first wrong byte. The error quotes the data, so that
// the user sees, for instance, what a login script has printed.
func readPreamble(r *bufio.Reader) (byte, error) {
	for n := 1; n <= len(magic); n++ {
		head, err := r.Peek(n)
		if !bytes.HasPrefix([]byte(magic), head) {
			head, _ = r.Peek(min(r.Buffered(), quoteBytes))
			return 0, fmt.Errorf("%w: it begins with %q; let nothing else print on this connection", ErrProtocol, head)
		}
		if err != nil {
			return 0, cutShort(err, len(head))
		}
	}
	head, err := r.Peek(len(magic) + 1)
	if err != nil {
		return 0, cutShort(err, len(head))
	}
	theirs := head[len(magic)]
	r.Discard(len(magic) + 1)
	return theirs, nil
}

// readRefusal reads the body of a refusal. It returns the refusal as a *Refused, or the error of the read.
func readRefusal(r *bufio.Reader, n uint64) error {
	if n == 0 || n > refusalBytes {
		return fmt.Errorf("%w: a refusal of %d bytes", ErrProtocol, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return cutShort(err, frameBytes)
	}
	return refusal(body[0], string(body[1:]))
}
