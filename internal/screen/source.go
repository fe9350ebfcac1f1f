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
	prefix []byte // of a line
	more   []byte // of the rest of a broken line
	turn   uint64 // the last call of Output for it

	scan   scanner
	held   heldLine
	bar    barState
	broken bool // the line's beginning was ended by other output

	touched bool      // since the last tick
	since   time.Time // the tick that saw it touched last
	live    bool      // has a row on the terminal
	row     string    // as rendered last
}

// heldLine is the part of a line that has not been written yet.
type heldLine struct {
	text  []byte // at most pieceSize and a style
	style style  // that the rank has set
	inked style  // that text ends with
	ink   bool   // text has more than blanks
}

// wipe empties the line.
func (l *heldLine) wipe() { l.text, l.inked, l.ink = l.text[:0], style{}, false }

// barState is what is known of a progress bar: a line that the rank begins again.
type barState struct {
	on    bool      // the line has been begun again
	moved int       // where the next text goes
	up    int       // how many lines above its last one the rank is
	shown bool      // the line was printed as a state of the bar
	due   bool      // the next complete state is to be printed
	since time.Time // the last state, or the beginning
}

// raw reports whether the bytes go through as they are.
func (f *source) raw() bool { return !f.screen.opts.Prefix && !f.sink.Terminal }

// name sets the host and with it the prefix.
func (f *source) name(host string) {
	f.host = host
	o, rank, stderr, colour := f.screen.opts, f.key>>1, f.key&1 == 1, f.sink.Colour
	f.prefix = prefix(o, rank, host, stderr, colour, false)
	f.more = prefix(o, rank, host, stderr, colour, true)
}

// take takes the next bytes.
func (f *source) take(data []byte) {
	f.touched = true
	f.turn = f.screen.turn
	if f.raw() {
		f.takeRaw(data)
		return
	}
	f.scan.feed(data, f)
}

// takeRaw passes whole lines on unchanged. It holds back the beginning of a line while that is
// short, so that it is not mixed with lines of other ranks.
func (f *source) takeRaw(data []byte) {
	whole := bytes.LastIndexByte(data, '\n') + 1
	rest := len(data) - whole
	if whole == 0 {
		rest += len(f.held.text)
	}
	if f.screen.opts.Ranks <= 1 || rest > pieceSize {
		whole = len(data)
	}
	if whole > 0 {
		f.pass(f.held.text)
		f.pass(data[:whole])
		f.held.text = f.held.text[:0]
	}
	f.held.text = append(f.held.text, data[whole:]...)
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
	if f.bar.moved != ahead {
		f.replace()
	}
	f.bar.shown = false
	f.held.ink = f.held.ink || len(bytes.TrimLeft(run, " \t")) > 0
	for len(run) > 0 {
		if f.held.style != f.held.inked {
			f.held.text = f.held.style.append(f.held.text)
			f.held.inked = f.held.style
		}
		n := min(len(run), max(0, pieceSize-len(f.held.text)))
		for n > 0 && n < len(run) && !utf8.RuneStart(run[n]) {
			n--
		}
		if n == 0 { // the next character does not fit
			f.emit(f.sink.Terminal)
			f.broken = f.sink.Terminal
			continue
		}
		f.held.text = append(f.held.text, run[:n]...)
		run = run[n:]
	}
}

// newline ends the line, unless it only goes down to where the rank has been
// before.
func (f *source) newline() {
	if f.bar.up > 0 {
		f.bar.up--
		if f.bar.moved != ahead {
			return
		}
	}
	switch {
	case f.bar.shown, f.broken && len(f.held.text) == 0 && f.sink.open != f:
		// All of it has been printed and ended already.
		f.clear()
	default:
		if f.bar.on && !f.held.ink {
			f.held.wipe()
		}
		f.emit(true)
	}
	f.bar.moved, f.bar.on, f.broken, f.bar.shown, f.bar.due = ahead, false, false, false, false
	f.bar.since = time.Time{}
}

// home goes to the start of the line: what comes next replaces it.
func (f *source) home() { f.bar.moved = atStart }

// back moves n lines up. This is how a rank draws several progress bars below one another: it
// writes the bars, moves up, and later moves down by newlines to write them again. Together they
// count as one bar, whose state is the one that was written last.
func (f *source) back(n int) {
	if !f.bar.on && (len(f.held.text) > 0 || f.sink.open == f) {
		f.emit(true)
	}
	if f.bar.moved == ahead {
		f.bar.moved = elsewhere
	}
	f.bar.up = min(f.bar.up+n, maxUp)
}

// sgr changes the style of the text to come.
func (f *source) sgr(params []byte) {
	if f.sink.Colour {
		f.held.style.apply(params)
	}
}

// replace drops the line, because its next state follows. It keeps the line of a bar if the next
// text goes elsewhere.
func (f *source) replace() {
	if f.sink.open == f {
		f.screen.begin(f.sink)
		f.sink.finish()
	}
	if (f.bar.due || f.bar.moved == elsewhere) && f.held.ink && !f.bar.shown {
		f.emit(true)
	}
	f.held.wipe()
	f.bar.on = f.bar.moved == atStart
	f.bar.moved, f.broken, f.bar.shown, f.bar.due = ahead, false, false, false
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
		if end && len(f.held.text) == 0 {
			p = bytes.TrimRight(p, " ")
		}
		k.buf = append(k.buf, p...)
	}
	k.buf = append(k.buf, f.held.text...)
	if f.held.inked != (style{}) {
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

// clear empties the line and takes its row away.
func (f *source) clear() {
	f.held.wipe()
	f.live, f.row = false, ""
}

// tick shows what has been unfinished for long enough at the time now.
func (f *source) tick(now time.Time) {
	if f.touched {
		f.touched, f.since = false, now
	}
	if len(f.held.text) == 0 || f.bar.shown {
		return
	}
	idle := now.Sub(f.since)
	switch {
	case f.raw():
		if idle >= partialAfter {
			f.pass(f.held.text)
			f.held.text = f.held.text[:0]
		}
	case f.sink.Terminal:
		f.live = f.live || f.bar.on || idle >= promptAfter
	case f.bar.on && f.bar.since.IsZero():
		f.bar.since = now
	case f.bar.on:
		if !f.held.ink || now.Sub(f.bar.since) < barEvery {
			return
		}
		f.bar.since = now
		if idle < partialAfter {
			f.bar.due = true // once it is known to be complete
			return
		}
		text, inked := f.held.text, f.held.inked
		f.emit(true)
		f.held.text, f.held.inked, f.held.ink, f.bar.shown = text, inked, true, true
	case idle >= partialAfter:
		f.emit(false)
	}
}

// end writes what is left.
func (f *source) end() {
	if f.raw() {
		f.pass(f.held.text)
		return
	}
	f.scan.end(f)
	switch k := f.sink; {
	case len(f.held.text) > 0 && !f.bar.shown && (f.held.ink || !f.bar.on):
		f.emit(true)
	case k.open == f:
		f.screen.begin(k)
		k.finish()
	}
	f.clear()
}
