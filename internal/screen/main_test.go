package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk has a Screen, what the Screen has written, and a clock that only steps move.
type desk struct {
	t        *testing.T
	s        *Screen
	out, err bytes.Buffer
	now      time.Time
}

// step does something to the Screen of a desk.
type step func(*desk)

func newDesk(t *testing.T, opts Options, steps ...step) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if opts.Out.W == nil {
		opts.Out.W = &d.out
	}
	if opts.Err.W == nil {
		opts.Err.W = &d.err
	}
	d.s = New(opts)
	d.do(steps...)
	return d
}

func (d *desk) do(steps ...step) {
	for _, s := range steps {
		s(d)
	}
}

func (d *desk) ok(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func out(rank int, data string) step {
	return func(d *desk) { d.ok(d.s.Output(rank, "h1", false, []byte(data))) }
}

func errOut(rank int, data string) step {
	return func(d *desk) { d.ok(d.s.Output(rank, "h1", true, []byte(data))) }
}

func on(host string, rank int, data string) step {
	return func(d *desk) { d.ok(d.s.Output(rank, host, false, []byte(data))) }
}

func eos(rank int) step { return func(d *desk) { d.ok(d.s.EndOfStream(rank, false)) } }

func say(text string) step { return func(d *desk) { d.s.Say("%s", text) } }

func status(text string) step { return func(d *desk) { d.s.Status(text) } }

func closing() step { return func(d *desk) { d.ok(d.s.Close()) } }

// wait lets time pass. It calls Flush every 100 ms.
func wait(span time.Duration) step {
	return func(d *desk) {
		for end := d.now.Add(span); d.now.Before(end); {
			d.ok(d.s.Flush(d.now))
			d.now = d.now.Add(100 * time.Millisecond)
		}
		d.ok(d.s.Flush(d.now))
	}
}

func steps(list ...step) []step { return list }

// terminal simulates a small terminal with an unlimited scrollback. It fails the test at a control sequence that a
// Screen must not send.
type terminal struct {
	t          *testing.T
	cols, high int
	text       [][]rune
	row, col   int
	writes     int
}

func newTerminal(t *testing.T, cols, high int) *terminal {
	return &terminal{t: t, cols: cols, high: high, text: make([][]rune, 1)}
}

func (e *terminal) stream(colour bool) Stream {
	return Stream{W: e, Terminal: true, Colour: colour, Size: func() (int, int) { return e.cols, e.high }}
}

func (e *terminal) Write(p []byte) (int, error) {
	e.writes++
	rest := string(p)
	for rest != "" {
		if strings.HasPrefix(rest, "\x1b[") {
			end := strings.IndexFunc(rest[2:], func(r rune) bool { return r >= 0x40 })
			if end < 0 {
				e.t.Errorf("the sequence %q does not end", rest)
				return len(p), nil
			}
			e.control(rest[2+end], rest[2:2+end])
			rest = rest[3+end:]
			continue
		}
		for i, r := range rest {
			e.put(r)
			rest = rest[i+len(string(r)):]
			break
		}
	}
	return len(p), nil
}

func (e *terminal) put(r rune) {
	switch {
	case r == '\r':
		e.col = 0
	case r == '\n':
		e.col = 0
		e.row++
		if e.row == len(e.text) {
			e.text = append(e.text, nil)
		}
	case r != '\t' && r < 0x20, r == 0x7f, 0x80 <= r && r < 0xa0:
		e.t.Errorf("control %U on the terminal", r)
	default:
		if e.col == e.cols {
			e.put('\n')
		}
		for len(e.text[e.row]) <= e.col {
			e.text[e.row] = append(e.text[e.row], ' ')
		}
		e.text[e.row][e.col] = r
		e.col++
	}
}

func (e *terminal) control(final byte, params string) {
	n := count([]byte(params))
	switch final {
	case 'm':
	case 'A':
		if top := max(0, len(e.text)-e.high); e.row-n < top {
			e.t.Errorf("%d lines up from %d, out of the window", n, e.row)
		}
		e.row = max(0, e.row-n)
	case 'G':
		e.col = n - 1
	case 'J':
		e.text = e.text[:e.row+1]
		e.text[e.row] = e.text[e.row][:min(e.col, len(e.text[e.row]))]
	default:
		e.t.Errorf("sequence CSI %q %c on the terminal", params, final)
	}
}

// show returns the lines that the terminal shows, with a bar at the cursor.
func (e *terminal) show() string {
	var b strings.Builder
	for i, line := range e.text {
		line := strings.TrimRight(string(line), " ")
		if i == e.row {
			for len([]rune(line)) < e.col {
				line += " "
			}
			r := []rune(line)
			line = string(r[:e.col]) + "▏" + string(r[e.col:])
		}
		b.WriteString(line)
		if i < len(e.text)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
