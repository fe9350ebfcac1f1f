package screen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxRows bounds the rows of progress bars.
const maxRows = 16

// Status sets the line at the bottom of the terminal, "" for none. It is cut to
// the terminal's width and redrawn around all that is shown. It does nothing if
// Err is no terminal. It waits for writes as all other methods do, but writes
// no more than a few short lines itself.
func (s *Screen) Status(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.err.Terminal {
		return
	}
	s.status = oneLine(line)
	s.show()
}

// refresh makes the rows show the present state and size.
func (s *Screen) refresh() {
	if s.live == nil {
		return
	}
	for _, f := range s.sources {
		f.row = ""
	}
	s.measure()
}

// measure asks for the size of the terminal.
func (s *Screen) measure() {
	s.cols, s.lines = 80, 24
	if s.live == nil || s.live.Size == nil {
		return
	}
	if cols, lines := s.live.Size(); cols > 0 && lines > 0 {
		s.cols, s.lines = cols, lines
	}
}

// erase takes the live rows away.
func (s *Screen) erase() {
	if !s.drawn {
		return
	}
	s.drawn = false
	s.live.buf = append(s.live.buf, '\r')
	if s.above > 0 {
		s.live.buf = fmt.Appendf(s.live.buf, "\x1b[%dA", s.above)
	}
	s.live.buf = append(s.live.buf, "\x1b[J"...)
}

// draw brings the live rows on the terminal to what they should be.
func (s *Screen) draw() {
	frame, above := s.compose()
	if s.drawn && bytes.Equal(frame, s.frame) {
		return
	}
	s.erase()
	s.drawn = len(frame) > 0
	s.frame, s.above = frame, above
	s.live.buf = append(s.live.buf, frame...)
}

// compose returns the live rows as they are to be drawn, and how many of them
// the cursor is below: bars in the order of their ranks, then the unfinished
// line that was written to last, then the status. The cursor stays at the end
// of the unfinished line, since that may be a question to which the answer is
// typed; when the terminal's echo then ends that line, the cursor is on the
// status, and erase takes away that but not the answer.
func (s *Screen) compose() (frame []byte, above int) {
	var prompt *source
	for _, f := range s.sources {
		if f.live && !f.bar && (prompt == nil || f.turn > prompt.turn) {
			prompt = f
		}
	}
	var rows []string
	room, left := max(0, min((s.lines-4)/2, maxRows)), 0
	for _, f := range s.sources {
		switch {
		case !f.live || !f.ink || f == prompt:
		case len(rows) == room:
			left++
		default:
			rows = append(rows, s.row(f, false))
		}
	}
	if left > 0 && room > 0 {
		rows = append(rows, s.fit(fmt.Sprintf("and %d more", left)))
	}
	above = len(rows)
	if prompt != nil {
		rows = append(rows, s.row(prompt, true))
	}
	if s.status != "" {
		rows = append(rows, s.fit(s.status))
	}
	if len(rows) == 0 {
		return nil, 0
	}
	frame = []byte(strings.Join(rows, "\n"))
	switch {
	case prompt == nil:
		above = len(rows) - 1
	case s.status != "":
		frame = fmt.Appendf(frame, "\x1b[A\x1b[%dG", ansi.StringWidth(prompt.row)+1)
	}
	return frame, above
}

// row renders f's line: a bar from its beginning, a prompt to its end.
func (s *Screen) row(f *source, prompt bool) string {
	if f.row != "" {
		return f.row
	}
	head := f.prefix
	if f.broken {
		head = f.more
	}
	text := strings.ReplaceAll(string(f.line), "\t", " ")
	if prompt {
		room := s.cols - 1 - ansi.StringWidth(string(head))
		if over := ansi.StringWidth(text) - room; over > 0 && room > 1 {
			text = ansi.TruncateLeft(text, over+1, "…")
		}
	}
	f.row = s.fit(string(head) + text)
	if f.inked != (style{}) {
		f.row += resetStyle
	}
	return f.row
}

// fit cuts the line to the terminal, less the last column: a full row would
// leave it to the terminal where the cursor is.
func (s *Screen) fit(line string) string {
	return ansi.Truncate(line, s.cols-1, "…")
}
