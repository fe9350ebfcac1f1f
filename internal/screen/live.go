package screen

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// maxRows bounds the rows of progress bars.
const maxRows = 16

// liveRows are the rows at the bottom of a terminal that are drawn again and again:
// progress bars, unfinished lines and the status.
type liveRows struct {
	sink      *sink // of the terminal
	status    string
	drawn     bool   // they are on the terminal
	frame     []byte // as they were drawn
	above     int    // rows of them above the cursor
	refreshed time.Time
	cols      int // of the terminal
	lines     int
}

// Status sets the status line at the bottom of the terminal; "" removes it. The line is cut to
// the terminal's width, and stays at the bottom when other text is shown. Status does nothing
// if Err is not a terminal. Like all other methods, it waits while another call writes.
func (s *Screen) Status(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.err.Terminal || s.live == nil {
		return
	}
	s.live.status = oneLine(line)
	s.show()
}

// Columns returns the width of the terminal to which gangrun's own messages go, or 0 if that is no terminal.
func (s *Screen) Columns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.err.Terminal || s.live == nil {
		return 0
	}
	s.live.measure()
	return s.live.cols
}

// refresh makes the rows show the present state and size.
func (s *Screen) refresh() {
	if s.live == nil {
		return
	}
	for _, f := range s.sources {
		f.row = ""
	}
	s.live.measure()
}

// measure asks for the size of the terminal.
func (l *liveRows) measure() {
	if l == nil {
		return
	}
	l.cols, l.lines = 80, 24
	if l.sink.Size == nil {
		return
	}
	if cols, lines := l.sink.Size(); cols > 0 && lines > 0 {
		l.cols, l.lines = cols, lines
	}
}

// erase takes the live rows away.
func (l *liveRows) erase() {
	if !l.drawn {
		return
	}
	l.drawn = false
	l.sink.buf = append(l.sink.buf, '\r')
	if l.above > 0 {
		l.sink.buf = fmt.Appendf(l.sink.buf, "\x1b[%dA", l.above)
	}
	l.sink.buf = append(l.sink.buf, "\x1b[J"...)
}

// draw brings the live rows on the terminal to what they should be.
func (l *liveRows) draw(sources []*source) {
	frame, above := l.compose(sources)
	if l.drawn && bytes.Equal(frame, l.frame) {
		return
	}
	l.erase()
	l.drawn = len(frame) > 0
	l.frame, l.above = frame, above
	l.sink.buf = append(l.sink.buf, frame...)
}

// compose returns the live rows as they are to be drawn: the bars in the order of their ranks, then
// the unfinished line that was written to last, then the status. It also returns how many rows are
// above the cursor.
//
// The cursor stays at the end of the unfinished line, because the user may type the answer to a
// question there. When the terminal ends that line, the cursor is on the status; erase then removes
// the status, but not the answer.
func (l *liveRows) compose(sources []*source) (frame []byte, above int) {
	var prompt *source
	for _, f := range sources {
		if f.live && !f.bar.on && (prompt == nil || f.turn > prompt.turn) {
			prompt = f
		}
	}
	var rows []string
	room, left := max(0, min((l.lines-4)/2, maxRows)), 0
	for _, f := range sources {
		switch {
		case !f.live || !f.held.ink || f == prompt:
		case len(rows) == room:
			left++
		default:
			rows = append(rows, l.row(f, false))
		}
	}
	if left > 0 && room > 0 {
		rows = append(rows, l.fit(fmt.Sprintf("and %d more", left)))
	}
	above = len(rows)
	if prompt != nil {
		rows = append(rows, l.row(prompt, true))
	}
	if l.status != "" {
		rows = append(rows, l.fit(l.status))
	}
	if len(rows) == 0 {
		return nil, 0
	}
	frame = []byte(strings.Join(rows, "\n"))
	switch {
	case prompt == nil:
		above = len(rows) - 1
	case l.status != "":
		frame = fmt.Appendf(frame, "\x1b[A\x1b[%dG", ansi.StringWidth(prompt.row)+1)
	}
	return frame, above
}

// row renders f's line: a bar from its beginning, a prompt to its end.
func (l *liveRows) row(f *source, prompt bool) string {
	if f.row != "" {
		return f.row
	}
	head := f.prefix
	if f.broken {
		head = f.more
	}
	text := strings.ReplaceAll(string(f.held.text), "\t", " ")
	if prompt {
		room := l.cols - 1 - ansi.StringWidth(string(head))
		if over := ansi.StringWidth(text) - room; over > 0 && room > 1 {
			text = ansi.TruncateLeft(text, over+1, "…")
		}
	}
	f.row = l.fit(string(head) + text)
	if f.held.inked != (style{}) {
		f.row += resetStyle
	}
	return f.row
}

// fit cuts the line to the width of the terminal, less one column: after a full row, the position
// of the cursor would depend on the terminal.
func (l *liveRows) fit(line string) string {
	return ansi.Truncate(line, l.cols-1, "…")
}
