package screen

import (
	"strings"
	"testing"
	"time"
)

// TestPipe checks what is written if no stream is a terminal.
func TestPipe(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", pieceSize/16)
	prefixed := Options{Ranks: 2, Prefix: true}
	colour := Options{Ranks: 2, Prefix: true, Out: Stream{Colour: true}, Err: Stream{Colour: true}}
	bare := Options{Ranks: 2}
	tests := []struct {
		name  string
		opts  Options
		steps []step
		out   string
		err   string
	}{
		{"lines", prefixed, steps(out(0, "a\nb\n"), out(1, "c\n")), "[0]  a\n[0]  b\n[1]  c\n", ""},
		{"standard error", prefixed, steps(errOut(1, "oops\n")), "", "[1]! oops\n"},
		{"hosts", Options{Ranks: 2, Prefix: true, Hosts: true}, steps(on("n1", 0, "a\n"), on("n\x1b[31m2\n", 1, "b\n"), on("", 0, "c\n")),
			"[0 n1]  a\n[1 n2]  b\n[0]  c\n", ""},
		{"width", Options{Ranks: 101, Prefix: true}, steps(out(7, "a\n"), out(100, "b\n"), errOut(12, "c\n")),
			"[7]    a\n[100]  b\n", "[12]!  c\n"},
		{"more ranks than said", Options{Ranks: 1, Prefix: true}, steps(out(12, "a\n")), "[12] a\n", ""},
		{"empty lines", prefixed, steps(out(0, "\n\n")), "[0]\n[0]\n", ""},
		{"whole lines", prefixed, steps(out(0, "he"), out(1, "wor"), out(0, "llo\n"), out(1, "ld\n")),
			"[0]  hello\n[1]  world\n", ""},
		{"cut character", prefixed, steps(out(0, "\xe5\xad"), out(0, "\xa6\xf0"), out(0, "\x9f"), out(0, "\x98\x80\n")), "[0]  学😀\n", ""},
		{"bad UTF-8", prefixed, steps(out(0, "a\xff\xfeb\xc0\xafc\xed\xa0\x80d\xe5"), out(0, "\xad"), out(0, "e\n")),
			"[0]  a��b��c���d��e\n", ""},
		{"bad UTF-8 at the end", prefixed, steps(out(0, "a\xe5\xad"), eos(0)), "[0]  a��\n", ""},
		{"end of a stream", prefixed, steps(out(0, "a"), out(1, "b"), eos(0), eos(0), out(1, "c\n")), "[0]  a\n[1]  bc\n", ""},
		{"close", prefixed, steps(out(1, "b"), errOut(0, "e"), out(0, "a"), closing(), closing()), "[0]  a\n[1]  b\n", "[0]! e\n"},
		{"after close", prefixed, steps(closing(), say("bye"), out(0, "a\n")), "[0]  a\n", "gangrun: bye\n"},

		{"not idle long enough", prefixed, steps(out(0, "a"), wait(900*time.Millisecond)), "", ""},
		{"idle", prefixed, steps(out(0, "name? "), wait(time.Second)), "[0]  name? ", ""},
		{"idle, continued", prefixed, steps(out(0, "a"), wait(2*time.Second), out(0, "b"), wait(2*time.Second), out(0, "c\nd\n")), "[0]  abc\n[0]  d\n", ""},
		{"idle, ended", prefixed, steps(out(0, "a"), wait(2*time.Second), out(0, "\n"), out(0, "b\n")), "[0]  a\n[0]  b\n", ""},
		{"idle, end of stream", prefixed, steps(out(0, "a"), wait(2*time.Second), eos(0), out(1, "b\n")), "[0]  a\n[1]  b\n", ""},
		{"idle, broken", prefixed, steps(out(0, "a"), wait(2*time.Second), out(1, "x\n"), out(0, "b\nc\n")), "[0]  a\n[1]  x\n[0]+ b\n[0]  c\n", ""},
		{"idle, broken at its end", prefixed, steps(out(0, "a"), wait(2*time.Second), out(1, "x\n"), out(0, "\nc\n")), "[0]  a\n[1]  x\n[0]  c\n", ""},
		{"idle, broken by words", prefixed, steps(errOut(0, "a"), wait(2*time.Second), say("x"), errOut(0, "b\n")), "", "[0]! a\ngangrun: x\n[0]!+ b\n"},
		{"the streams do not break one another", prefixed, steps(out(0, "a"), wait(2*time.Second), errOut(0, "x\n"), out(0, "b\n")), "[0]  ab\n", "[0]! x\n"},
		{"idle, then a bar", prefixed, steps(out(0, "a"), wait(2*time.Second), out(0, "\rb\rc\n")), "[0]  a\n[0]  c\n", ""},

		{"CR LF", prefixed, steps(out(0, "a\r\nb\r"), out(0, "\nc\r\r\n")), "[0]  a\n[0]  b\n[0]  c\n", ""},
		{"bar", prefixed, steps(out(0, "\r  0%|    |"), out(0, "\r 50%|##  |"), wait(time.Second), out(0, "\r100%|####|\ndone\n")),
			"[0]  100%|####|\n[0]  done\n", ""},
		{"bar as JavaScript draws it", prefixed, steps(out(0, "\x1b[2K\x1b[1G1%\x1b[2K\x1b[G2%\x1b[2G\n")), "[0]  2%\n", ""},
		{"bar to the end of the stream", prefixed, steps(out(0, "\r1%\r2%\r"), eos(0)), "[0]  2%\n", ""},
		{"bar wiped", prefixed, steps(out(0, "\r1%\r2%\r     \rdone\n\r3%\r  "), eos(0)), "[0]  done\n", ""},
		{"bar wiped and ended", prefixed, steps(out(0, "\r1%\r    \n")), "[0]\n", ""},
		{"long bar", prefixed, steps(out(0, "\r1%"), wait(6*time.Second), out(0, "\r2%"), wait(4*time.Second), out(0, "\r3%"), wait(time.Second), out(0, "\r4%\n")),
			"[0]  2%\n[0]  4%\n", ""},
		{"long bar in motion", prefixed, steps(bar(0, 25*time.Second), out(0, "\n")), "[0]  bar 10s\n[0]  bar 20s\n[0]  bar 24.8s\n", ""},
		{"stuck bar", prefixed, steps(out(0, "\r7%"), wait(time.Minute), out(0, "\n")), "[0]  7%\n", ""},
		{"stuck bar, continued", prefixed, steps(out(0, "\r7%"), wait(time.Minute), out(0, " failed\n")), "[0]  7%\n[0]  7% failed\n", ""},
		{"stuck bar, gone on", prefixed, steps(out(0, "\r7%"), wait(time.Minute), out(0, "\r8%\n")), "[0]  7%\n[0]  8%\n", ""},
		{"nested bars", prefixed, steps(out(0, "\repoch 1/2"), out(0, "\n\r 1%\x1b[A"), out(0, "\n\r99%\x1b[A"), out(0, "\n\r100%\x1b[A"),
			out(0, "\repoch 2/2"), out(0, "\n\r50%\x1b[A\n\rall\n")), "[0]  epoch 1/2\n[0]  epoch 2/2\n[0]  all\n", ""},
		{"trace under nested bars", prefixed, steps(out(0, "\repoch 1/2\n\r 1%\x1b[A\n\r99%\x1b[ATraceback\n  File\n")),
			"[0]  epoch 1/2\n[0]  99%\n[0]  Traceback\n[0]    File\n", ""},
		{"no text is lost by going up", prefixed, steps(out(0, "a\x1b[9Ab\nc\n\n\nd\x1b[A\n\ne\x1b[0A"), out(0, "\nf\n")),
			"[0]  a\n[0]  b\n[0]  c\n[0]\n[0]\n[0]  d\n[0]  e\n[0]  f\n", ""},

		{"sequences", prefixed, steps(out(0, "a\x1b[31mb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x1bP+q\x1b\\e\x1b_G\x1b\\f\x1b[2J\x1b[9;9Hg\x1b(Bh\x1bci\x1bktitle\x1b\\j\n")),
			"[0]  abcdefghij\n", ""},
		{"cut sequences", prefixed, steps(out(0, "a\x1b"), out(0, "[3"), out(0, "1"), out(0, "mb\x1b]0;ti"), out(0, "tle\x1b"), out(0, "\\c\xc2"), out(0, "\x9b1"), out(0, "mz\n")),
			"[0]  abcz\n", ""},
		{"C1", prefixed, steps(out(0, "a\u009b31mb\u009d0;t\u009cc\u0090q\u009cd\u0085e\u009fx\u009cf\x9b1m\n")), "[0]  abcdef�1m\n", ""},
		{"controls", prefixed, steps(out(0, "a\x00b\x07c\x08d\x0be\x0cf\x0eg\x0fh\x7fi\tj\n")), "[0]  abcdefghi\tj\n", ""},
		{"tricks", prefixed, steps(out(0, "a\u202eb\u2066c\u2069d\u200be\ufefff\u2028g\u200fh\u061ci\U000e0041j\u00adk\n")), "[0]  abcdef ghijk\n", ""},
		{"joiners", prefixed, steps(out(0, "👩\u200d💻 ☺\ufe0f می\u200cخواهم\n")), "[0]  👩\u200d💻 ☺\ufe0f می\u200cخواهم\n", ""},
		{"unterminated string", prefixed, steps(out(0, "a\x1b]0;lost\nb\x1bPlost\r\nc\x1b[1\nd\x1b\ne\n")), "[0]  a\n[0]  b\n[0]  c\n[0]  d\n[0]  e\n", ""},
		{"sequence broken off", prefixed, steps(out(0, "\x1b[1é\x1bé\x1b(é\x1b[1\x18a\x1b]x\x1ab\x1b[1\x1b[1mc\x1b[\xff\n")), "[0]  éééabc�\n", ""},
		{"no other colours than SGR", colour, steps(out(0, "\x1b[>4;2m\x1b[?4ma\x1b[1 mb\x1b[8;5mc\n")), "\x1b[36m[0]\x1b[0m  abc\n", ""},

		{"colour", colour, steps(out(0, "\x1b[31mred\nstill\x1b[m\nplain\n")),
			"\x1b[36m[0]\x1b[0m  \x1b[0;31mred\x1b[0m\n\x1b[36m[0]\x1b[0m  \x1b[0;31mstill\x1b[0m\n\x1b[36m[0]\x1b[0m  plain\n", ""},
		{"colour on standard error", colour, steps(errOut(1, "x\n")), "", "\x1b[32m[1]\x1b[0m\x1b[31m!\x1b[0m x\n"},
		{"colour and other ranks", colour, steps(out(0, "\x1b[1mx"), wait(2*time.Second), out(1, "y\n"), out(0, "z\n")),
			"\x1b[36m[0]\x1b[0m  \x1b[0;1mx\x1b[0m\n\x1b[32m[1]\x1b[0m  y\n\x1b[36m[0]\x1b[0m+ \x1b[0;1mz\x1b[0m\n", ""},
		{"colour, continued", colour, steps(out(0, "\x1b[1mx"), wait(2*time.Second), out(0, "y\x1b[0mz\n")),
			"\x1b[36m[0]\x1b[0m  \x1b[0;1mx\x1b[0m\x1b[0;1my\x1b[0mz\n", ""},

		{"long line", prefixed, steps(out(0, long+"a"), out(0, "b\nc\n")), "[0]  " + long + "ab\n[0]  c\n", ""},
		{"long line, broken", prefixed, steps(out(0, long+"a"), out(1, "x\n"), out(0, "b\n")), "[0]  " + long + "\n[1]  x\n[0]+ ab\n", ""},
		{"as long as can be held", prefixed, steps(out(0, long), out(1, "x\n"), out(0, "\n")), "[1]  x\n[0]  " + long + "\n", ""},

		{"words", prefixed, steps(say("one\ntwo\n"), say(""), say("\x1b[31mx\u202e\r!")), "", "gangrun: one\ngangrun: two\ngangrun:\ngangrun: x!\n"},
		{"no status", prefixed, steps(status("working"), wait(time.Second), out(0, "a\n")), "[0]  a\n", ""},

		{"bytes", bare, steps(out(0, "a\x1b[31m\xff\x00\r\n"), errOut(1, "\x1bc\n")), "a\x1b[31m\xff\x00\r\n", "\x1bc\n"},
		{"bytes of whole lines", bare, steps(out(0, "a"), out(1, "x\ny"), out(0, "b\nc"), out(1, "z"), eos(0), closing()), "x\nab\ncyz", ""},
		{"bytes, idle", bare, steps(out(0, "a"), wait(time.Second), out(1, "b\n"), out(0, "c\n")), "ab\nc\n", ""},
		{"bytes, words", bare, steps(errOut(0, "a"), wait(time.Second), say("x"), errOut(0, "b\n")), "", "a\ngangrun: x\nb\n"},
		{"bytes, long", bare, steps(out(0, long), out(1, "x\n"), out(0, "y"), out(1, "z\n")), "x\n" + long + "yz\n", ""},
		{"bytes of one rank", Options{Ranks: 1}, steps(out(0, "a"), out(0, "")), "a", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t, test.opts, test.steps...)
			if got := d.out.String(); got != test.out {
				t.Errorf("standard output:\n got %s\nwant %s", clip(got), clip(test.out))
			}
			if got := d.err.String(); got != test.err {
				t.Errorf("standard error:\n got %s\nwant %s", clip(got), clip(test.err))
			}
		})
	}
}

// bar draws a progress bar that shows its age. It does so five times a second, in pieces.
func bar(rank int, span time.Duration) step {
	return func(d *desk) {
		for age := time.Duration(0); age < span; age += 200 * time.Millisecond {
			out(rank, "\rb")(d)
			d.ok(d.s.Flush(d.now))
			out(rank, "ar "+age.String())(d)
			d.now = d.now.Add(200 * time.Millisecond)
		}
	}
}

// clip quotes s. It omits the middle of long lines.
func clip(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(quote(s), "0123456789abcdef0123456789abcdef", ""), `\n`, "\\n\n\t")
}
