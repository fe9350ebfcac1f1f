package screen

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// harmless fails the test if a text has anything but lines of visible text with prefixes.
func harmless(t *testing.T, text string, colour bool) {
	t.Helper()
	if colour {
		for line := range strings.Lines(text) {
			if all := sgr.FindAllString(line, -1); len(all) > 0 && all[len(all)-1] != resetStyle {
				t.Errorf("the line %q leaves its colour on", line)
			}
		}
		text = sgr.ReplaceAllString(text, "")
	}
	if !utf8.ValidString(text) {
		t.Errorf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (r < 0x20 || 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || hidden(r)) {
			t.Fatalf("%U in %q", r, text)
		}
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "[0]") || !strings.HasSuffix(line, "\n") {
			t.Errorf("line %q", line)
		}
	}
}

// FuzzOutput checks that the output of a rank is shown without harmful control characters, and does not depend on how
// it is divided into pieces.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		"hello\nworld\n", "\r 1%\r 2%\r\nx", "\x1b[31mred\x1b[0m\n", "\x1b]0;t\x07a\x1b]8;;u\x1b\\b", "\xe5\xad\xa6\xff\xc2\x9b1mz",
		"\r1\n\r2\x1b[A\n\r3\x1b[A\r4\n", "a\x1b[2Ab\r\n\n\n", "\x1b[38:2::1:2:3mx\x1b[48;5;7my\n", "\u202ex\u2028y\x00\x1bPq\x1b\\", "\x1b[1\xe5\x1b(\xad\x18",
	} {
		for _, cuts := range []string{"\x01", "\x02\x01\x05", "\x03"} {
			f.Add([]byte(seed), []byte(cuts), uint16(0))
		}
	}
	f.Add([]byte("a\x1b[1mé"), []byte("\x01\xff"), uint16(40_000))
	f.Fuzz(func(t *testing.T, data, cuts []byte, repeat uint16) {
		if len(data) < 64 { // makes lines that are longer than what the Screen keeps
			data = bytes.Repeat(data, int(repeat)+1)
		}
		for _, stream := range []Stream{{}, {Colour: true}, {Terminal: true}, {Terminal: true, Colour: true}} {
			show := func(cuts []byte, flush bool) string {
				var b bytes.Buffer
				stream := stream
				stream.W = &b
				s := New(Options{Ranks: 2, Prefix: true, Out: stream, Err: Stream{W: &b}})
				rest, now := data, time.Time{}
				for i := 0; len(rest) > 0; i++ {
					n := len(rest)
					if len(cuts) > 0 {
						n = min(n, int(cuts[i%len(cuts)])+1)
					}
					if err := s.Output(0, "", false, rest[:n]); err != nil {
						t.Fatal(err)
					}
					if flush {
						now = now.Add(time.Second)
						if err := s.Flush(now); err != nil {
							t.Fatal(err)
						}
					}
					rest = rest[n:]
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			whole := show(nil, false)
			harmless(t, whole, stream.Colour)
			if cut := show(cuts, false); cut != whole {
				t.Errorf("%+v: cut %q, whole %q", stream, cut, whole)
			}
			if !stream.Terminal {
				harmless(t, show(cuts, true), stream.Colour)
			}
		}
	})
}

// FuzzTerminal checks that a terminal gets only the controls that the live rows need, whatever two ranks write and
// whenever.
func FuzzTerminal(f *testing.F) {
	f.Add([]byte("name? \r 1%\x1b[2J\n\x1b[A"), byte(3), byte(20))
	f.Add([]byte("\r\xff\t学\x1b[41m      "), byte(1), byte(3))
	f.Fuzz(func(t *testing.T, data []byte, cut, cols byte) {
		e := newTerminal(t, int(cols), 24)
		d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(true), Err: e.stream(true)}, status("working"))
		for i := 0; len(data) > 0; i++ {
			n := min(len(data), int(cut)+1)
			d.do(out(i%2, string(data[:n])), wait(time.Duration(i%3)*200*time.Millisecond))
			data = data[n:]
		}
		d.do(closing())
		if e.col != 0 {
			t.Errorf("the cursor is left in column %d", e.col)
		}
	})
}

// FuzzStyle checks that the sequence that a style writes sets the same style again.
func FuzzStyle(f *testing.F) {
	f.Add("1;31")
	f.Add("38:2::1:2:3;48;5;7")
	f.Fuzz(func(t *testing.T, params string) {
		var c scanner
		c.state = csi
		for _, b := range []byte(params) {
			if 0x20 <= b && b < 0x40 {
				c.param(b)
			}
		}
		var first, again style
		first.apply(c.params[:c.nparam])
		sequence := first.append(nil)
		again.apply(sequence[2 : len(sequence)-1])
		if first != again {
			t.Errorf("%q sets %+v, %q sets %+v", params, first, sequence, again)
		}
	})
}
