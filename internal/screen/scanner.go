// The scanner is not ansi.Parser of charmbracelet/x/ansi, which swallows all that follows an
// unterminated control string, and takes bytes of invalid UTF-8 for controls.

package screen

import "unicode/utf8"

// listener receives the effects of a stream of bytes on a terminal, without those that could do
// harm. It must not keep the slices that it gets.
type listener interface {
	text(run []byte)   // visible text and tabs, whole characters
	newline()          // "\n"
	home()             // back to the start of the line: "\r" and its like
	back(n int)        // n lines up: CUU, CPL
	sgr(params []byte) // colours and attributes: digits, ';' and ':'
}

// The states of a scanner, as in ECMA-48.
const (
	ground    = iota
	escape    // after ESC
	inter     // after ESC and intermediate bytes
	csi       // after ESC [
	oscString // after ESC ], up to ST or BEL
	anyString // DCS, SOS, PM, APC and screen's title, up to ST
)

// scanner takes a stream apart into text and the few controls that count. It
// keeps at most a cut character and the parameters of one sequence.
//
// An unterminated control string would swallow everything to the end of the
// stream; here it ends at the end of the line.
type scanner struct {
	state  int
	cut    [utf8.UTFMax]byte // the beginning of a character
	ncut   int
	params [64]byte // of a CSI sequence
	nparam int
	odd    bool // the sequence has intermediate or private bytes, or too many
}

var replacement = []byte("\uFFFD")

// feed takes the next bytes of the stream.
func (c *scanner) feed(p []byte, to listener) {
	for c.ncut > 0 && len(p) > 0 {
		c.cut[c.ncut] = p[0]
		c.ncut++
		p = p[1:]
		for c.ncut > 0 && utf8.FullRune(c.cut[:c.ncut]) {
			n := c.one(c.cut[:c.ncut], to)
			c.ncut = copy(c.cut[:], c.cut[n:c.ncut])
		}
	}
	for len(p) > 0 {
		if c.state == ground {
			if n := visible(p); n > 0 {
				to.text(p[:n])
				p = p[n:]
				continue
			}
		}
		if !utf8.FullRune(p) {
			c.ncut = copy(c.cut[:], p)
			return
		}
		p = p[c.one(p, to):]
	}
}

// end says that no more bytes come.
func (c *scanner) end(to listener) {
	for i := range c.ncut {
		c.one(c.cut[i:i+1], to)
	}
	c.ncut, c.state = 0, ground
}

// one takes the character that p begins with, or one byte that is none, and
// returns its size.
func (c *scanner) one(p []byte, to listener) int {
	r, size := utf8.DecodeRune(p)
	switch {
	case r == '\n':
		c.state = ground
		to.newline()
		return size
	case r == '\r':
		c.state = ground
		to.home()
		return size
	case r == 0x1b:
		c.state = escape
		return size
	case r == 0x18, r == 0x1a, r == 0x9c, r == 0x07 && c.state == oscString: // CAN, SUB, ST, BEL
		c.state = ground
		return size
	case r == '\t' && c.state == ground:
		to.text(p[:size])
		return size
	case r < 0x20, r == 0x7f:
		return size
	case 0x80 <= r && r < 0xa0: // C1: the short form of ESC and a letter
		c.introduce(r - 0x40)
		return size
	}

	switch c.state {
	case escape, inter:
		switch {
		case r < 0x30:
			c.state = inter
			return size
		case r < 0x7f && c.state == escape:
			c.introduce(r)
			return size
		case r < 0x7f:
			c.state = ground
			return size
		}
	case csi:
		switch {
		case r < 0x40:
			c.param(byte(r))
			return size
		case r < 0x7f:
			c.state = ground
			c.dispatch(r, to)
			return size
		}
	case oscString, anyString:
		return size
	}

	// Text, perhaps in the midst of a sequence that it breaks off.
	c.state = ground
	switch {
	case r == utf8.RuneError:
		to.text(replacement)
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		to.text([]byte{' '})
	case !hidden(r):
		to.text(p[:size])
	}
	return size
}

// introduce goes on after ESC with the byte r.
func (c *scanner) introduce(r rune) {
	c.state = ground
	switch r {
	case '[':
		c.state, c.nparam, c.odd = csi, 0, false
	case ']':
		c.state = oscString
	case 'P', 'X', '^', '_', 'k':
		c.state = anyString
	}
}

// param takes a parameter or intermediate byte of a CSI sequence.
func (c *scanner) param(b byte) {
	if b < 0x30 || b > ';' || c.nparam == len(c.params) {
		c.odd = true
		return
	}
	c.params[c.nparam] = b
	c.nparam++
}

// dispatch ends a CSI sequence.
func (c *scanner) dispatch(final rune, to listener) {
	if c.odd {
		return
	}
	params := c.params[:c.nparam]
	switch final {
	case 'm':
		to.sgr(params)
	case 'A', 'F':
		to.back(count(params))
	case 'G':
		if count(params) == 1 {
			to.home()
		}
	}
}

// count reads the only parameter of a cursor movement, 1 if it is missing.
func count(params []byte) int {
	n := 0
	for _, b := range params {
		if b < '0' || b > '9' {
			break
		}
		n = min(10*n+int(b-'0'), 9999)
	}
	return max(n, 1)
}

// visible returns the length of the visible text that p begins with.
func visible(p []byte) int {
	i := 0
	for i < len(p) {
		if b := p[i]; b < utf8.RuneSelf {
			if (b < 0x20 && b != '\t') || b == 0x7f {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError || r < 0xa0 || r == 0x2028 || r == 0x2029 || hidden(r) {
			break
		}
		i += size
	}
	return i
}

// hidden says that r has no shape of its own but changes how others look, or
// hides among them: bidirectional marks, embeddings, overrides and isolates,
// zero-width blanks, annotations, tags. The joiners U+200C and U+200D and the
// variation selectors U+FE00 to U+FE0F stay: scripts and emoji need them.
func hidden(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0x200b, r == 0x200e, r == 0x200f, r == 0xfeff:
		return true
	}
	return 0x202a <= r && r <= 0x202e || 0x2060 <= r && r <= 0x206f ||
		0xfff9 <= r && r <= 0xfffb || 0xe0000 <= r && r <= 0xe0fff
}
