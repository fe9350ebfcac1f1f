package openmpi

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// PMIx reads the messages between a rank and its PMIx server, and finds out how far the rank has come. In PMIx 3 to 5,
// each message is a header of 16 bytes (int32 index, uint32 tag, size of the rest), and then a packed command with its
// arguments. See src/mca/ptl and src/mca/bfrops of OpenPMIx. The zero value is ready for a new connection.
type PMIx struct {
	client, server frames
	asked          bool            // the first command has been received
	opaque         bool            // the messages have another format
	fences         map[uint32]bool // tags of fences that wait for other ranks
	state          PMIxState
}

// PMIxState is how far a rank has come.
type PMIxState struct {
	// Opaque is true if the messages have another format. The other fields then say nothing.
	Opaque    bool
	Waiting   bool // the rank waits in a fence for other ranks
	Passed    bool // the rank has passed a fence
	Finalized bool
	Aborted   bool
	Code      int // the exit code, if Aborted is true
}

// The commands that change the state. Their names in OpenPMIx are PMIX_*_CMD. They are equal in all versions so far.
const (
	cmdRequest  = 0
	cmdAbort    = 1
	cmdFence    = 3
	cmdFinalize = 5
	cmdLog      = 16
)

// maxFrame limits how many bytes of one message are kept. Help texts are shorter. Longer messages have keys and values,
// and only their beginning is needed.
const maxFrame = 64 << 10

// State returns how far the rank has come.
func (p *PMIx) State() PMIxState {
	p.state.Opaque, p.state.Waiting = p.opaque, len(p.fences) > 0
	return p.state
}

// Client reads data that the rank has sent. It returns the texts that the rank asks its server to print: one
// text for each message.
func (p *PMIx) Client(data []byte) (texts []string) {
	p.client.shakes = true
	p.client.feed(data, func(number int, tag uint32, body []byte) bool {
		if number == 0 {
			return true // the handshake, which has another format
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

// Server reads data that the server has sent.
func (p *PMIx) Server(data []byte) {
	if !p.server.begun {
		// The server sends two numbers of 4 bytes: a status, and the index of the client.
		p.server.held = append(p.server.held, data...)
		if len(p.server.held) < 8 {
			return
		}
		data, p.server.held, p.server.begun = p.server.held, nil, true
		p.opaque = p.opaque || binary.BigEndian.Uint32(data) != 0
		data = data[8:]
	}
	p.server.feed(data, func(_ int, tag uint32, _ []byte) bool {
		p.state.Passed = p.state.Passed || p.fences[tag]
		delete(p.fences, tag)
		return !p.opaque
	})
}

// frames splits a stream into messages.
type frames struct {
	begun  bool   // used only for the server: its answer to the handshake has been read
	shakes bool   // the first message is a handshake
	broken bool   // the data has no valid frame
	held   []byte // the part of a header or body that has been read
	number int
	tag    uint32
	left   int // bytes of the body still to be read; -1 while a header is read
	body   bool
}

const headerSize = 16

// feed calls message for each complete message, until message returns false.
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

// bodySize reads a size of 8 bytes. In a handshake, the size may be a number of 8 bytes in the host's order. Otherwise
// it is in the first 4 bytes, in network order.
func bodySize(b []byte, handshake bool) (int, bool) {
	const most = 1 << 30 // limit for the size of a body in bytes, which no real body reaches
	if size := binary.NativeEndian.Uint64(b); handshake && size <= most {
		return int(size), true
	}
	if size := binary.BigEndian.Uint32(b); binary.BigEndian.Uint32(b[4:]) == 0 && size <= most {
		return int(size), true
	}
	return 0, false
}

// unpackCommand reads the command of a message. The message begins with the number of commands, which is 1. That number
// has 4 bytes in network order or, since PMIx 4.1, a variable length. The command follows, as one byte. unpackCommand
// cannot read messages that describe the types of their values.
func unpackCommand(body []byte) (command byte, rest []byte, ok bool) {
	switch {
	case len(body) >= 2 && body[0] == 2: // 1, in zigzag
		return body[1], body[2:], true
	case len(body) >= 5 && binary.BigEndian.Uint32(body) == 1:
		return body[4], body, true
	}
	return 0, nil, false
}

// unpackInt reads the int32 that follows a command. It returns 0 if there is none.
func unpackInt(rest []byte) int {
	if len(rest) >= 5 && binary.BigEndian.Uint32(rest) == 1 { // the number of values, in the format of PMIx 3
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

// printable returns the texts in a message that have several lines. In the message, each text ends with a 0 byte.
func printable(rest []byte) string {
	var b strings.Builder
	for from := 0; from < len(rest); {
		to := from + bytes.IndexByte(rest[from:], 0)
		if to < from { // the message is truncated
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

// textStart returns the start of the text that ends before rest[to], a 0 byte. rest[from] follows the previous 0 byte.
// The size of the text comes before the text, and includes the 0 byte. It has four bytes in network order, or is a
// number of variable length in zigzag. A byte of the size may look like a letter.
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
	// The message may be truncated. Bytes that are not text are left out.
	unprintable := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '�' }
	return from + bytes.LastIndexFunc(rest[from:to], unprintable) + 1
}
