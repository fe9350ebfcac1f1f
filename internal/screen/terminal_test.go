package screen

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func quote(s string) string { return strconv.Quote(s) }

// TestTerminal checks what a terminal shows. ▏ is the cursor.
func TestTerminal(t *testing.T) {
	opts := Options{Ranks: 2, Prefix: true}
	tests := []struct {
		name  string
		cols  int
		steps []step
		want  string
	}{
		{"lines", 40, steps(out(0, "a\n"), errOut(1, "b\n"), say("c")), "[0]  a\n[1]! b\ngangrun: c\n▏"},
		{"status", 40, steps(status("working"), out(0, "a\n"), errOut(1, "b\n"), say("c")), "[0]  a\n[1]! b\ngangrun: c\nworking▏"},
		{"status changed", 40, steps(status("working hard"), status("idle")), "idle▏"},
		{"status taken away", 40, steps(status("working"), out(0, "a\n"), status("")), "[0]  a\n▏"},
		{"status too wide", 12, steps(status("working very hard"), out(0, "a\n")), "[0]  a\nworking ve…▏"},
		{"status of wide characters", 12, steps(status("学習学習学習学習")), "学習学習学…▏"},
		{"status sanitised", 40, steps(status("a\x1b[2Jb\nc\td\u202e")), "ab c d▏"},
		{"close", 40, steps(status("working"), out(0, "a"), wait(time.Second), closing(), say("bye")), "[0]  a\ngangrun: bye\n▏"},

		{"prompt too soon", 40, steps(out(0, "name? "), wait(100*time.Millisecond)), "▏"},
		{"prompt", 40, steps(out(0, "name? "), wait(200*time.Millisecond)), "[0]  name? ▏"},
		{"prompt and status", 40, steps(status("working"), out(0, "name? "), wait(time.Second)), "[0]  name? ▏\nworking"},
		{"prompt and other output", 40, steps(status("working"), out(0, "name? "), wait(time.Second), out(1, "x\n")), "[1]  x\n[0]  name? ▏\nworking"},
		{"prompt answered", 40, steps(status("working"), out(0, "name? "), wait(time.Second), typed("joe\n"), out(0, "hello\n")),
			"[0]  name? joe\n[0]  name? hello\nworking▏"},
		{"prompt continued", 40, steps(out(0, "a"), wait(time.Second), out(0, "b"), wait(time.Second), out(0, "c\nd\n")), "[0]  abc\n[0]  d\n▏"},
		{"prompt too wide", 20, steps(out(0, "overwrite /a/b/c/d/e? "), wait(time.Second)), "[0]  … /a/b/c/d/e? ▏"},
		{"prompt with a tab", 20, steps(out(0, "a\tb"), wait(time.Second)), "[0]  a b▏"},
		{"two prompts", 40, steps(out(1, "one? "), out(0, "two? "), wait(time.Second), out(1, "or "), wait(time.Second)), "[0]  two?\n[1]  one? or ▏"},
		{"no room at all", 1, steps(status("working"), out(0, "ab"), wait(time.Second)), "▏\n"},

		{"bar", 40, steps(out(0, "\r 10%"), out(0, "\r 20%"), wait(0)), "[0]   20%▏"},
		{"bar redrawn", 40, steps(status("working"), out(0, "\r 10%"), wait(time.Second), out(0, "\r 20%"), wait(time.Second)), "[0]   20%\nworking▏"},
		{"bar and other output", 40, steps(out(0, "\r 10%"), wait(time.Second), out(1, "x\ny\n")), "[1]  x\n[1]  y\n[0]   10%▏"},
		{"bar ended", 40, steps(out(0, "\r 10%"), wait(time.Second), out(0, "\r100%\r\n"), out(1, "x\n")), "[0]  100%\n[1]  x\n▏"},
		{"bar wiped", 40, steps(out(0, "\r 10%"), wait(time.Second), out(0, "\r    \r"), wait(time.Second), out(0, "x\n")), "[0]  x\n▏"},
		{"bars", 40, steps(errOut(1, "\r 1%"), errOut(0, "\r 2%"), out(1, "\r 3%"), status("working"), wait(0)), "[0]!  2%\n[1]   3%\n[1]!  1%\nworking▏"},
		{"bars and a prompt", 40, steps(out(0, "ok? "), out(1, "\r 3%"), status("working"), wait(time.Second)), "[1]   3%\n[0]  ok? ▏\nworking"},
		{"bar too wide", 12, steps(out(0, "\r 10%|####    |"), wait(0)), "[0]   10%|…▏"},
		{"many bars", 40, steps(manyBars(20), status("working"), wait(0)),
			"[0]  0%\n[1]  1%\n[2]  2%\n[3]  3%\n[4]  4%\n[5]  5%\n[6]  6%\n[7]  7%\n[8]  8%\n[9]  9%\nand 10 more\nworking▏"},
		{"nested bars", 40, steps(out(0, "\repoch 1\n\r 1%\x1b[A"), wait(time.Second), out(0, "\n\r 2%\x1b[A"), wait(time.Second)), "[0]  epoch 1\n[0]   2%▏"},
	}
	for _, test := range tests {
		for _, colour := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/colour=%t", test.name, colour), func(t *testing.T) {
				e := newTerminal(t, test.cols, 24)
				opts := opts
				opts.Out, opts.Err = e.stream(colour), e.stream(colour)
				newDesk(t, opts, test.steps...)
				if got := e.show(); got != test.want {
					t.Errorf("the terminal shows\n%s\nnot\n%s", got, test.want)
				}
			})
		}
	}
}

// typed returns what the terminal shows when a person types text.
func typed(text string) step {
	return func(d *desk) {
		e := d.s.opts.Out.W.(*terminal)
		_, err := e.Write([]byte(text))
		d.ok(err)
	}
}

func manyBars(n int) step {
	return func(d *desk) {
		for i := range n {
			out(i, fmt.Sprintf("\r%d%%", i))(d)
		}
	}
}

// TestBarRate checks that bars are drawn at most five times a second, however often they change.
func TestBarRate(t *testing.T) {
	e := newTerminal(t, 40, 24)
	d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(true), Err: e.stream(true)})
	for i := range 1000 { // 10 s
		d.do(out(0, fmt.Sprintf("\r%d", i)), out(1, fmt.Sprintf("\r%d", -i)))
		d.ok(d.s.Flush(d.now))
		d.now = d.now.Add(10 * time.Millisecond)
	}
	if e.writes < 40 || e.writes > 51 {
		t.Errorf("the bars were drawn %d times in 10 s, want about 50", e.writes)
	}
}

// TestStill checks that nothing is written if nothing has changed.
func TestStill(t *testing.T) {
	e := newTerminal(t, 40, 24)
	d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(true), Err: e.stream(true)},
		status("working"), out(0, "\r1%"), wait(time.Second))
	before := e.writes
	d.do(status("working"), wait(5*time.Second))
	if e.writes != before {
		t.Errorf("%d writes, want none", e.writes-before)
	}
}

// TestOneWrite checks that text and live rows are written to a terminal in one write, so that the terminal does not
// flicker.
func TestOneWrite(t *testing.T) {
	e := newTerminal(t, 40, 24)
	d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(true), Err: e.stream(true)}, status("working"))
	before := e.writes
	d.do(errOut(0, "a\nb\n"))
	if got := e.writes - before; got != 1 {
		t.Errorf("%d writes, want 1", got)
	}
}

// TestResize checks that the live rows fit the new size of the terminal after they are drawn again.
func TestResize(t *testing.T) {
	e := newTerminal(t, 40, 24)
	d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(false), Err: e.stream(false)},
		status("working very hard"), wait(time.Second))
	e.cols = 12
	d.do(status(""), wait(time.Second), status("working very hard"))
	if got, want := e.show(), "working ve…▏"; got != want {
		t.Errorf("the terminal shows %q, not %q", got, want)
	}
}

// TestMixed tests a Screen of whose streams only one is a terminal.
func TestMixed(t *testing.T) {
	t.Run("out is a pipe", func(t *testing.T) {
		e := newTerminal(t, 40, 24)
		d := newDesk(t, Options{Ranks: 2, Prefix: true, Err: e.stream(false)}, status("working"))
		d.do(errOut(0, "\r5%"), wait(time.Second), out(0, "a\n"))
		// The live rows are removed while the reader of the pipe may use the terminal.
		if got := e.show(); got != "▏" {
			t.Errorf("the terminal shows %q", got)
		}
		d.do(wait(0))
		if got, want := e.show(), "[0]! 5%\nworking▏"; got != want {
			t.Errorf("the terminal shows %q, not %q", got, want)
		}
		if got, want := d.out.String(), "[0]  a\n"; got != want {
			t.Errorf("the pipe got %q, not %q", got, want)
		}
	})
	t.Run("err is a file", func(t *testing.T) {
		e := newTerminal(t, 40, 24)
		d := newDesk(t, Options{Ranks: 2, Prefix: true, Out: e.stream(false)}, status("working"))
		d.do(out(0, "\r5%"), wait(time.Second), errOut(0, "a\n"), wait(0))
		if got, want := e.show(), "[0]  5%▏"; got != want {
			t.Errorf("the terminal shows %q, not %q", got, want)
		}
		if got, want := d.err.String(), "[0]! a\n"; got != want {
			t.Errorf("the file got %q, not %q", got, want)
		}
	})
	t.Run("no prefix", func(t *testing.T) {
		e := newTerminal(t, 40, 24)
		d := newDesk(t, Options{Ranks: 2, Out: e.stream(false)})
		d.do(out(0, "\x1b[2Ja\x07\n"), errOut(0, "\x1b[2Ja\x07\n"), out(1, "\r5%"), wait(time.Second))
		if got, want := e.show(), "a\n5%▏"; got != want {
			t.Errorf("the terminal shows %q, not %q", got, want)
		}
		if got, want := d.err.String(), "\x1b[2Ja\x07\n"; got != want {
			t.Errorf("the file got %q, not %q", got, want)
		}
	})
}

// TestLongLineOnTerminal checks that a long line is shown in marked pieces.
func TestLongLineOnTerminal(t *testing.T) {
	var b strings.Builder
	s := New(Options{Ranks: 2, Prefix: true, Out: Stream{W: &b, Terminal: true}, Err: Stream{W: &b}})
	line := strings.Repeat("é", pieceSize/2)
	if err := s.Output(0, "", false, []byte(line+"x"+line+"\ny\n")); err != nil {
		t.Fatal(err)
	}
	want := "[0]  " + line + "\n[0]+ x" + line[2:] + "\n[0]+ é\n[0]  y\n"
	if b.String() != want {
		t.Errorf("%d bytes, want %d, beginning with %q", b.Len(), len(want), b.String()[:20])
	}
}

// TestWordsInColour checks the labels of gangrun's own messages.
func TestWordsInColour(t *testing.T) {
	for _, test := range []struct {
		colour bool
		want   string
	}{
		{false, "gangrun: 1 of 2\ngangrun: error: bad\ngangrun: error: worse\ngangrun: hint: do x\n"},
		{true, "gangrun: 1 of 2\ngangrun: \x1b[1;31merror:\x1b[0m bad\ngangrun: \x1b[1;31merror:\x1b[0m worse\ngangrun: \x1b[36mhint:\x1b[0m do x\n"},
	} {
		d := newDesk(t, Options{Ranks: 1, Prefix: true, Err: Stream{Colour: test.colour}})
		d.s.Say("%d of %d", 1, 2)
		d.s.Error("bad\nworse")
		d.s.Hint("do x")
		if got := d.err.String(); got != test.want {
			t.Errorf("colour %t: got %q, want %q", test.colour, got, test.want)
		}
	}
}
