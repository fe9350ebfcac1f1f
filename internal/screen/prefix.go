package screen

import (
	"bytes"
	"strconv"
)

// palette holds the SGR colours of the ranks' prefixes, in turn. Red is left
// to errors and to the mark of standard error.
var palette = [...]string{"36", "32", "35", "33", "34", "96", "92", "95"}

// prefix returns what goes before a line of the rank; more is for a line that
// goes on with a broken one.
func prefix(opts Options, rank int, host string, stderr, colour, more bool) []byte {
	if !opts.Prefix {
		return nil
	}
	number := strconv.Itoa(rank)
	var b []byte
	paint := func(sgr, text string) {
		if colour && text != "" {
			text = "\x1b[" + sgr + "m" + text + resetStyle
		}
		b = append(b, text...)
	}

	name := "[" + number
	if host = oneLine(host); opts.Hosts && host != "" {
		name += " " + host
	}
	paint(palette[uint(rank)%uint(len(palette))], name+"]")
	mark := ""
	if stderr {
		mark = "!"
		paint("31", mark)
	}
	if more {
		mark += "+"
		b = append(b, '+')
	}
	widest := len(strconv.Itoa(max(opts.Ranks-1, 0)))
	return append(b, bytes.Repeat([]byte{' '}, max(1, widest-len(number)+2-len(mark)))...)
}
