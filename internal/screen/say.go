package screen

import (
	"fmt"
	"strings"
)

// Say shows a message of gangrun's own on Err, with "gangrun: " before each line. Like Output,
// it blocks while the terminal is stopped. Say returns no error. If the write fails, the next
// call of a method that returns errors returns the error.
func (s *Screen) Say(format string, args ...any) {
	s.own("", "", fmt.Sprintf(format, args...))
}

// Error shows text on Err after "gangrun: error: ". The word "error" is red.
func (s *Screen) Error(text string) { s.own("error:", "1;31", text) }

// Hint shows text on Err after "gangrun: hint: ".
func (s *Screen) Hint(text string) { s.own("hint:", "36", text) }

// own shows the lines of text after "gangrun: " and the label.
func (s *Screen) own(label, sgr, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := "gangrun:"
	if label != "" && s.err.Colour {
		label = "\x1b[" + sgr + "m" + label + resetStyle
	}
	if label != "" {
		head += " " + label
	}
	s.begin(s.err)
	s.err.finish()
	for line := range strings.SplitSeq(strings.TrimSuffix(plain(text), "\n"), "\n") {
		s.err.buf = append(s.err.buf, head...)
		if line != "" {
			s.err.buf = append(append(s.err.buf, ' '), line...)
		}
		s.err.buf = append(s.err.buf, '\n')
	}
	s.show()
}

// plain returns s with newlines, tabs and visible text only.
func plain(s string) string {
	var c scanner
	var t plainText
	c.feed([]byte(s), &t)
	c.end(&t)
	return string(t)
}

// oneLine is plain, with blanks in place of newlines and tabs.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(strings.TrimSpace(plain(s)))
}

// plainText is a listener that keeps the text.
type plainText []byte

func (t *plainText) text(run []byte) { *t = append(*t, run...) }
func (t *plainText) newline()        { *t = append(*t, '\n') }
func (t *plainText) home()           {}
func (t *plainText) back(int)        {}
func (t *plainText) sgr([]byte)      {}
