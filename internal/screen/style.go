package screen

import "strconv"

const resetStyle = "\x1b[0m"

// style is how a rank's text looks. It knows colours and the attributes that
// leave text readable; blinking and concealed text are not among them.
type style struct {
	attrs  uint16 // the bit n is set for each SGR attribute n of attributes
	over   bool   // 53
	fg, bg colour
}

// attributes are the SGR parameters that a style keeps: bold, faint, italic,
// underlined, reverse, crossed out.
var attributes = [...]int{1, 2, 3, 4, 7, 9}

// colour is a colour as SGR says it.
type colour struct {
	kind    uint8 // 0: the terminal's own; else indexed, direct or basic
	r, g, b uint8 // r is the index where there is one
}

const (
	basic   = 1 // one of 16, index r
	indexed = 2 // one of 256, index r
	direct  = 3
)

// parameter is a number of an SGR sequence; sub if it came after ':'.
type parameter struct {
	n   int
	sub bool
}

// apply changes the style as an SGR sequence with the given parameters does.
// What it does not know it passes over.
func (s *style) apply(params []byte) {
	var list [65]parameter // scanner.params gives no more
	last := 0
	for _, b := range params {
		switch b {
		case ';', ':':
			last++
			list[last] = parameter{sub: b == ':'}
		default:
			list[last].n = min(10*list[last].n+int(b-'0'), 9999)
		}
	}
	p := list[:last+1]
	for len(p) > 0 {
		subs := 1
		for subs < len(p) && p[subs].sub {
			subs++
		}
		p = p[s.one(p, subs):]
	}
}

// one applies the first parameter of p, with its sub-parameters subs of p's
// elements, and returns how many elements it took.
func (s *style) one(p []parameter, subs int) int {
	switch n := p[0].n; {
	case n == 0:
		*s = style{}
	case n == 4 && subs > 1 && p[1].n == 0, n == 24:
		s.attrs &^= 1 << 4
	case n == 1, n == 2, n == 3, n == 4, n == 7, n == 9:
		s.attrs |= 1 << n
	case n == 21: // doubly underlined
		s.attrs |= 1 << 4
	case n == 22:
		s.attrs &^= 1<<1 | 1<<2
	case n == 23, n == 27, n == 29:
		s.attrs &^= 1 << (n - 20)
	case n == 53, n == 55:
		s.over = n == 53
	case 30 <= n && n <= 37:
		s.fg = colour{kind: basic, r: uint8(n - 30)}
	case 90 <= n && n <= 97:
		s.fg = colour{kind: basic, r: uint8(n - 90 + 8)}
	case 40 <= n && n <= 47:
		s.bg = colour{kind: basic, r: uint8(n - 40)}
	case 100 <= n && n <= 107:
		s.bg = colour{kind: basic, r: uint8(n - 100 + 8)}
	case n == 39:
		s.fg = colour{}
	case n == 49:
		s.bg = colour{}
	case n == 38, n == 48, n == 58: // 58: the colour of the underline, passed over
		c, took := extended(p, subs)
		switch {
		case c.kind == 0:
		case n == 38:
			s.fg = c
		case n == 48:
			s.bg = c
		}
		return took
	}
	return subs
}

// extended reads an indexed or direct colour: 38;5;N, 38;2;R;G;B, 38:5:N,
// 38:2:R:G:B or 38:2:SPACE:R:G:B. The kind is 0 if it is none.
func extended(p []parameter, subs int) (colour, int) {
	took, v := subs, p[1:subs]
	if subs == 1 {
		v = p[1:]
	}
	if len(v) == 0 {
		return colour{}, took
	}
	need := map[int]int{5: 2, 2: 4}[v[0].n]
	switch {
	case need == 0:
		return colour{}, took
	case subs == 1:
		took = min(1+need, len(p))
	case need == 4 && len(v) > 4: // with a colour space
		v = append([]parameter{v[0]}, v[2:]...)
	}
	if len(v) < need {
		return colour{}, took
	}
	for _, x := range v[1:need] {
		if x.n > 255 {
			return colour{}, took
		}
	}
	if need == 2 {
		return colour{kind: indexed, r: uint8(v[1].n)}, took
	}
	return colour{kind: direct, r: uint8(v[1].n), g: uint8(v[2].n), b: uint8(v[3].n)}, took
}

// append adds the sequence that sets the style, whatever was set before.
func (s style) append(b []byte) []byte {
	b = append(b, "\x1b[0"...)
	for _, n := range attributes {
		if s.attrs&(1<<n) != 0 {
			b = number(b, n)
		}
	}
	if s.over {
		b = number(b, 53)
	}
	b = s.fg.append(b, 30)
	b = s.bg.append(b, 40)
	return append(b, 'm')
}

// append adds the parameters that set the colour; base is 30 for the text, 40
// for what is behind it.
func (c colour) append(b []byte, base int) []byte {
	switch {
	case c.kind == basic && c.r < 8:
		b = number(b, base+int(c.r))
	case c.kind == basic:
		b = number(b, base+60+int(c.r)-8)
	case c.kind == indexed:
		b = number(number(number(b, base+8), 5), int(c.r))
	case c.kind == direct:
		b = number(number(b, base+8), 2)
		b = number(number(number(b, int(c.r)), int(c.g)), int(c.b))
	}
	return b
}

func number(b []byte, n int) []byte {
	return strconv.AppendInt(append(b, ';'), int64(n), 10)
}
