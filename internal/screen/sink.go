package screen

import (
	"io"
	"os"
	"reflect"

	"golang.org/x/term"
)

// Stream is one of the two outputs of a Screen.
type Stream struct {
	// W is the writer.
	W io.Writer
	// Terminal is true if W is a terminal on which the cursor can be moved.
	Terminal bool
	// Colour is true if the Screen passes colours on and colours the prefix.
	Colour bool
	// Size returns the terminal's columns and lines. If it is nil or returns a size that is
	// not positive, the Screen uses 80 by 24.
	Size func() (cols, lines int)
}

// FileStream returns the Stream for a file such as os.Stdout. The Stream is a terminal if f
// is one and TERM is neither empty nor "dumb". It has colour if, in addition, NO_COLOR is
// unset or empty (https://no-color.org).
func FileStream(f *os.File, getenv func(string) string) Stream {
	fd := int(f.Fd())
	t := getenv("TERM")
	tty := term.IsTerminal(fd) && t != "" && t != "dumb"
	return Stream{
		W:        f,
		Terminal: tty,
		Colour:   tty && getenv("NO_COLOR") == "",
		Size: func() (int, int) {
			cols, lines, err := term.GetSize(fd)
			if err != nil {
				return 0, 0
			}
			return cols, lines
		},
	}
}

// same says that what is written to both arrives in one place: after "2>&1", or
// on one terminal. Then a line of one must not go on in one of the other.
func (a Stream) same(b Stream) bool {
	if a.Terminal != b.Terminal || a.Colour != b.Colour {
		return false
	}
	f, ok := a.W.(*os.File)
	g, too := b.W.(*os.File)
	if !ok || !too {
		v := reflect.ValueOf(a.W)
		return v.Comparable() && a.W == b.W
	}
	one, err := f.Stat()
	if err != nil {
		return false
	}
	other, err := g.Stat()
	return err == nil && os.SameFile(one, other)
}

// sink is a Stream with what is still to be written to it.
type sink struct {
	Stream
	buf  []byte
	open *source // whose unfinished line is the last thing written
	dead bool    // a write failed, all else is dropped
}

// finish ends a line that a source has left unfinished.
func (k *sink) finish() {
	if k.open == nil {
		return
	}
	k.buf = append(k.buf, '\n')
	k.open.broken = true
	k.open = nil
}

// drain writes the buffer; it returns an error only the first time.
func (k *sink) drain() error {
	if len(k.buf) == 0 {
		return nil
	}
	p := k.buf
	k.buf = k.buf[:0]
	if k.dead {
		return nil
	}
	n, err := k.W.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	k.dead = err != nil
	return err
}
