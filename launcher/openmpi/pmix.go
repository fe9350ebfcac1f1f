package openmpi

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// PMIx follows what a rank and its PMIx server say to each other, so that it is
// known and not guessed how far the rank has come. It takes PMIx 3 to 5, whose
// messages have one frame: a header of 16 bytes (int32 index, uint32 tag, size of
// what follows) and, packed, a command with its arguments. See
// src/mca/ptl and src/mca/bfrops of OpenPMIx. The zero value is a connection that
// has just been made.
type PMIx struct {
	client, server frames
	asked          bool            // the first command has come
	opaque         bool            // it speaks otherwise
	fences         map[uint32]bool // tags of those that wait for the others
	state          PMIxState
}

// PMIxState is how far a rank has come.
type PMIxState struct {
	// Opaque says that nothing but the connection itself is known.
	Opaque    bool
	Waiting   bool // in a fence, for the others
	Finalized bool
	Aborted   bool
	Code      int // of Aborted
}

// The commands that matter, PMIX_*_CMD of every version so far.
const (
	cmdRequest  = 0
	cmdAbort    = 1
	cmdFence    = 3
	cmdFinalize = 5
	cmdLog      = 16
)

// maxFrame bounds what is kept of one message, in bytes: a help text. Of longer
// ones, which hold keys and values, only the beginning is looked at.
const maxFrame = 64 << 10

// State returns how far the rank has come.
func (p *PMIx) State() PMIxState {
	p.state.Opaque, p.state.Waiting = p.opaque, len(p.fences) > 0
	return p.state
}

// Client reads what the rank says. It returns the texts that the rank wants
// printed, one for each message.
func (p *PMIx) Client(data []byte) (texts []string) {
	p.client.shakes = true
	p.client.feed(data, func(number int, tag uint32, body []byte) bool {
		if number == 0 {
			return true // the handshake, in a form of its own
		}
		command, rest, ok := unpackCommand(body)
		if !p.asked {
			p.asked = true
			p.opaque = p.opaque || !ok || command != cmdRequest
		}
		if p.opaque || !ok {
			return !p.opaque
		}
		switch command {
		case cmdAbort:
			p.state.Aborted = true
			p.state.Code = unpackInt(rest)
		case cmdFence:
			if p.fences == nil {
				p.fences = map[uint32]bool{}
			}
			if len(p.fences) < 64 {
				p.fences[tag] = true
			}
		case cmdFinalize:
			p.state.Finalized = true
		case cmdLog:
			if text := printable(rest); text != "" {
				texts = append(texts, text)
			}
		}
		return true
	})
	p.opaque = p.opaque || p.client.broken
	return texts
}

// Server reads what the server answers.
func (p *PMIx) Server(data []byte) {
	if !p.server.begun {
		// Two numbers of 4 bytes: a status, and the index of the client.
		p.server.held = append(p.server.held, data...)
		if len(p.server.held) < 8 {
			return
		}
		data, p.server.held, p.server.begun = p.server.held, nil, true
		p.opaque = p.opaque || binary.BigEndian.Uint32(data) != 0
		data = data[8:]
	}
	p.server.feed(data, func(_ int, tag uint32, _ []byte) bool {
		delete(p.fences, tag)
		return !p.opaque
	})
}

// frames cuts a stream into messages.
type frames struct {
	begun  bool   // of a server: its answer to the handshake has come
	shakes bool   // the first message is a handshake
	broken bool   // what came is no frame
	held   []byte // of a header, or of a body
	number int
	tag    uint32
	left   int // bytes of the body that have still to come; -1: a header
	body   bool
}

const headerSize = 16

// feed calls message for each that is complete, until it returns false.
func (f *frames) feed(data []byte, message func(number int, tag uint32, body []byte) bool) {
	for len(data) > 0 && !f.broken {
		if !f.body {
			n := min(headerSize-len(f.held), len(data))
			f.held, data = append(f.held, data[:n]...), data[n:]
			if len(f.held) < headerSize {
				return
			}
			size, ok := bodySize(f.held[8:16], f.shakes && f.number == 0)
			if !ok {
				f.broken, f.held = true, nil
				return
			}
			f.tag, f.left, f.body, f.held = binary.BigEndian.Uint32(f.held[4:8]), size, true, f.held[:0]
		}
		n := min(f.left, len(data))
		keep := min(n, maxFrame-len(f.held))
		f.held = append(f.held, data[:keep]...)
		data, f.left = data[n:], f.left-n
		if f.left == 0 {
			number := f.number
			f.number, f.body = f.number+1, false
			if !message(number, f.tag, f.held) {
				f.broken = true
			}
			f.held = f.held[:0]
		}
	}
}

// bodySize reads a size of 8 bytes: in the first four in network order, or in
// all of them in the host's, as in a handshake.
func bodySize(b []byte, handshake bool) (int, bool) {
	const most = 1 << 30 // of a body, in bytes; no real one comes near
	if size := binary.NativeEndian.Uint64(b); handshake && size <= most {
		return int(size), true
	}
	if size := binary.BigEndian.Uint32(b); binary.BigEndian.Uint32(b[4:]) == 0 && size <= most {
		return int(size), true
	}
	return 0, false
}

// unpackCommand reads a message's command: how many there are (1), as a number
// of 4 bytes or, in PMIx 4.1 and later, of one that is as long as it must be, and
// the command, a byte. Messages that describe the types of what they hold are
// not read.
func unpackCommand(body []byte) (command byte, rest []byte, ok bool) {
	switch {
	case len(body) >= 2 && body[0] == 2: // 1, in zigzag
		return body[1], body[2:], true
	case len(body) >= 5 && binary.BigEndian.Uint32(body) == 1:
		return body[4], body, true
	}
	return 0, nil, false
}

// unpackInt reads an int32 that follows a command; 0 where there is none.
func unpackInt(rest []byte) int {
	if len(rest) >= 5 && binary.BigEndian.Uint32(rest) == 1 { // the message, as unpackCommand left it
		if len(rest) >= 13 {
			return int(int32(binary.BigEndian.Uint32(rest[9:])))
		}
		return 0
	}
	if len(rest) < 2 || rest[0] != 2 {
		return 0
	}
	value, n := binary.Uvarint(rest[1:])
	if n <= 0 {
		return 0
	}
	return int(int32(uint32(value>>1) ^ -uint32(value&1)))
}

// printable returns the texts of a message, which end with a 0 byte, that have
// more than one line.
func printable(rest []byte) string {
	var b strings.Builder
	for from := 0; from < len(rest); {
		to := from + bytes.IndexByte(rest[from:], 0)
		if to < from { // the end of a message that was too long
			to = len(rest)
		}
		part := rest[textStart(rest, from, to):to]
		if bytes.Count(part, []byte{'\n'}) > 1 {
			b.Write(part)
		}
		from = to + 1
	}
	return b.String()
}

// textStart returns where the text begins that ends before rest[to], a 0 byte.
// rest[from] follows the 0 byte before it. The size of the text, with its 0 byte,
// stands before it: four bytes in network order, or a number in zigzag of as many
// bytes as it needs. A byte of it may look like a letter.
func textStart(rest []byte, from, to int) int {
	for at := from; at <= min(from+4, to); at++ {
		size := uint64(to - at + 1)
		if at >= 4 && uint64(binary.BigEndian.Uint32(rest[at-4:])) == size {
			return at
		}
		zigzag := binary.AppendUvarint(nil, 2*size)
		if size > 1 && bytes.HasSuffix(rest[:at], zigzag) {
			return at
		}
	}
	// Its end may have been cut off: what is no text is no part of it.
	unprintable := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '�' }
	return from + bytes.LastIndexFunc(rest[from:to], unprintable) + 1
}
