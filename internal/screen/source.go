package screen

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// maxUp bounds how many lines up a rank can go; more than a stack of progress
// bars needs.
const maxUp = 64

// Where the next text of a line goes.
const (
	ahead     = iota
	atStart   // takes the line's place, after "\r"
	elsewhere // to another line, after going up
)

// source is one of a rank's two streams: it makes lines of what a scanner
// finds in the bytes.
type source struct {
	screen *Screen
	sink   *sink
	key    int // of its rank and stream
	host   string
	raw    bool   // the bytes go through as they are
	prefix []byte // of a line
	more   []byte // of the rest of a broken line
	turn   uint64 // the last call of Output for it

	scan  scanner
	line  []byte // what is held of the line, at most pieceSize and a style
	style style  // that the rank has set
	inked style  // that line ends with
	ink   bool   // line has more than blanks

	moved  int  // where the next text goes
	bar    bool // the line has been begun again, it is a progress bar
	up     int  // how many lines above its last one the rank is
	broken bool // the line's beginning was ended by other output
	shown  bool // line was printed as the state of a bar
	due    bool // the next complete state of the bar is to be printed

	touched bool      // since the last tick
	since   time.Time // the tick that saw it touched last
	barTime time.Time // the last state of the bar, or its beginning
	live    bool      // has a row on the terminal
	row     string    // as rendered last
}

// name sets the host and with it the prefix.
func (f *source) name(host string) {
	f.host = host
	o, rank, stderr, color := f.screen.opts, f.key>>1, f.key&1 == 1, f.sink.Color
	f.prefix = prefix(o, rank, host, stderr, color, false)
	f.more = prefix(o, rank, host, stderr, color, true)
}

// take takes the next bytes.
func (f *source) take(data []byte) {
	f.touched = true
	f.turn = f.screen.turn
	if f.raw {
		f.takeRaw(data)
		return
	}
	f.scan.feed(data, f)
}

// takeRaw lets whole lines through as they are. It holds the rest while that is
// small and there are other ranks to get mixed up with.
func (f *source) takeRaw(data []byte) {
	whole := bytes.LastIndexByte(data, '\n') + 1
	rest := len(data) - whole
	if whole == 0 {
		rest += len(f.line)
	}
	if f.screen.opts.Ranks <= 1 || rest > pieceSize {
		whole = len(data)
	}
	if whole > 0 {
		f.pass(f.line)
		f.pass(data[:whole])
		f.line = f.line[:0]
	}
	f.line = append(f.line, data[whole:]...)
}

// pass puts p into the sink as it is.
func (f *source) pass(p []byte) {
	k := f.sink
	for len(p) > 0 {
		f.screen.begin(k)
		n := min(len(p), pieceSize)
		k.buf = append(k.buf, p[:n]...)
		k.open = nil
		if p[n-1] != '\n' {
			k.open = f
		}
		p = p[n:]
		f.screen.relieve(k)
	}
}

// text adds visible text to the line.
func (f *source) text(run []byte) {
	if f.moved != ahead {
		f.replace()
	}
	f.shown = false
	f.ink = f.ink || len(bytes.TrimLeft(run, " \t")) > 0
	for len(run) > 0 {
		if f.style != f.inked {
			f.line = f.style.append(f.line)
			f.inked = f.style
		}
		n := min(len(run), max(0, pieceSize-len(f.line)))
		for n > 0 && n < len(run) && !utf8.RuneStart(run[n]) {
			n--
		}
		if n == 0 { // the next character does not fit
			f.emit(f.sink.Terminal)
			f.broken = f.sink.Terminal
			continue
		}
		f.line = append(f.line, run[:n]...)
		run = run[n:]
	}
}

// newline ends the line, unless it only goes down to where the rank has been
// before.
func (f *source) newline() {
	if f.up > 0 {
		f.up--
		if f.moved != ahead {
			return
		}
	}
	switch {
	case f.shown, f.broken && len(f.line) == 0 && f.sink.open != f:
		// All of it has been printed and ended already.
		f.clear()
	default:
		if f.bar && !f.ink {
			f.wipe()
		}
		f.emit(true)
	}
	f.moved, f.bar, f.broken, f.shown, f.due = ahead, false, false, false, false
	f.barTime = time.Time{}
}

// home goes to the start of the line: what comes next replaces it.
func (f *source) home() { f.moved = atStart }

// back goes n lines up. Bars below one another are drawn so: the rank writes a
// bar, goes up, and next time goes down by newlines to write it again. They
// count as one bar, whose state is the last that was written.
func (f *source) back(n int) {
	if !f.bar && (len(f.line) > 0 || f.sink.open == f) {
		f.emit(true)
	}
	if f.moved == ahead {
		f.moved = elsewhere
	}
	f.up = min(f.up+n, maxUp)
}

// sgr changes the style of the text to come.
func (f *source) sgr(params []byte) {
	if f.sink.Color {
		f.style.apply(params)
	}
}

// replace drops the line for its next state; only a bar's line is still there
// when the next text goes elsewhere, and is kept.
func (f *source) replace() {
	if f.sink.open == f {
		f.screen.begin(f.sink)
		f.sink.finish()
	}
	if (f.due || f.moved == elsewhere) && f.ink && !f.shown {
		f.emit(true)
	}
	f.wipe()
	f.bar = f.moved == atStart
	f.moved, f.broken, f.shown, f.due = ahead, false, false, false
}

// emit writes the line and, if it is to end, a newline.
func (f *source) emit(end bool) {
	k := f.sink
	f.screen.begin(k)
	if k.open != f {
		k.finish()
		p := f.prefix
		if f.broken {
			p = f.more
		}
		if end && len(f.line) == 0 {
			p = bytes.TrimRight(p, " ")
		}
		k.buf = append(k.buf, p...)
	}
	k.buf = append(k.buf, f.line...)
	if f.inked != (style{}) {
		k.buf = append(k.buf, resetStyle...)
	}
	k.open = f
	if end {
		k.buf = append(k.buf, '\n')
		k.open = nil
	}
	f.broken = false
	f.clear()
	f.screen.relieve(k)
}

// wipe empties the line.
func (f *source) wipe() {
	f.line, f.inked, f.ink = f.line[:0], style{}, false
}

// clear empties the line and takes its row away.
func (f *source) clear() {
	f.wipe()
	f.live, f.row = false, ""
}

// tick shows what has been unfinished for long enough at the time now.
func (f *source) tick(now time.Time) {
	if f.touched {
		f.touched, f.since = false, now
	}
	if len(f.line) == 0 || f.shown {
		return
	}
	idle := now.Sub(f.since)
	switch {
	case f.raw:
		if idle >= partialAfter {
			f.pass(f.line)
			f.line = f.line[:0]
		}
	case f.sink.Terminal:
		f.live = f.live || f.bar || idle >= promptAfter
	case f.bar && f.barTime.IsZero():
		f.barTime = now
	case f.bar:
		if !f.ink || now.Sub(f.barTime) < barEvery {
			return
		}
		f.barTime = now
		if idle < partialAfter {
			f.due = true // once it is known to be complete
			return
		}
		line, inked := f.line, f.inked
		f.emit(true)
		f.line, f.inked, f.ink, f.shown = line, inked, true, true
	case idle >= partialAfter:
		f.emit(false)
	}
}

// end writes what is left.
func (f *source) end() {
	if f.raw {
		f.pass(f.line)
		return
	}
	f.scan.end(f)
	switch k := f.sink; {
	case len(f.line) > 0 && !f.shown && (f.ink || !f.bar):
		f.emit(true)
	case k.open == f:
		f.screen.begin(k)
		k.finish()
	}
	f.clear()
}
