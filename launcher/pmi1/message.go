package pmi1

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// maxLine limits the length of a line in bytes, including its end. It is the size of the buffer into which MPICH reads
// a line.
const maxLine = 1024

// maxFields limits the number of fields of a line. The longest known line has 5 fields.
const maxFields = 32

// field is one KEY=VALUE of a line. The value of a key without "=" is nil.
type field struct{ key, value []byte }

// message is one line of the protocol. Its fields share the memory of the line, and are valid
// until the next line is read.
type message struct {
	line   []byte
	cmd    []byte
	multi  bool // the line begins with mcmd=: more lines follow, up to endcmd
	fields [maxFields]field
	n      int
}

var (
	errNoCommand = errors.New("a line must begin with cmd= or mcmd=")
	errFields    = fmt.Errorf("a line may have at most %d fields", maxFields)
	errControl   = errors.New("a line may not hold control characters")
	errKey       = errors.New("a field must be KEY or KEY=VALUE")
)

// parse splits a line, which must be without its end. A backslash before a space keeps the space in the value. The
// backslash also stays in the value.
func (m *message) parse(line []byte) error {
	m.line, m.cmd, m.multi, m.n = line, nil, false, 0
	for _, c := range line {
		if c < ' ' || c == 0x7f {
			return errControl
		}
	}
	for rest := bytes.TrimLeft(line, " "); len(rest) > 0; rest = bytes.TrimLeft(rest, " ") {
		end := valueEnd(rest)
		key, value, valued := bytes.Cut(rest[:end], []byte{'='})
		rest = rest[end:]
		if len(key) == 0 {
			return errKey
		}
		if m.cmd == nil {
			m.multi = string(key) == "mcmd"
			if !m.multi && string(key) != "cmd" || len(value) == 0 {
				return errNoCommand
			}
			m.cmd = value
			continue
		}
		if m.n == maxFields {
			return errFields
		}
		if !valued {
			value = nil
		}
		m.fields[m.n] = field{key, value}
		m.n++
	}
	if m.cmd == nil {
		return errNoCommand
	}
	return nil
}

// valueEnd returns where the first field of b ends.
func valueEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case ' ':
			return i
		case '\\':
			i++
		}
	}
	return len(b)
}

// get returns the value of the first field that has the key. It returns nil if there is none.
func (m *message) get(key string) []byte {
	for _, f := range m.fields[:m.n] {
		if string(f.key) == key {
			return f.value
		}
	}
	return nil
}

// number returns the value of a field as a number.
func (m *message) number(key string) (int, bool) {
	n, err := strconv.Atoi(string(m.get(key)))
	return n, err == nil
}

// tail returns the text from the value of a field to the end of the line. It is for free text, which may contain
// spaces.
func (m *message) tail(key string) []byte {
	_, after, _ := bytes.Cut(m.line, []byte(" "+key+"="))
	return after
}
