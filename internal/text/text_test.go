package text

import (
	"strings"
	"testing"
	"unicode"
)

func TestCount(t *testing.T) {
	for noun, want := range map[string]string{
		"rank": "2 ranks", "switch": "2 switches", "process": "2 processes", "directory": "2 directories",
		"day": "2 days", "bus": "2 buses", "mutex": "2 mutexes", "crash": "2 crashes", "GPU": "2 GPUs", "progress line": "2 progress lines",
	} {
		if got := Count(2, noun); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := Count(1, noun); got != "1 "+noun {
			t.Errorf("%q", got)
		}
	}
	if got := Count(0, "rank"); got != "0 ranks" {
		t.Errorf("%q", got)
	}
}

func TestLists(t *testing.T) {
	for _, c := range []struct {
		names         []string
		and, or, some string
	}{
		{nil, "", "", ""},
		{[]string{"a"}, "a", "a", "a"},
		{[]string{"a", "b"}, "a and b", "a or b", "a, b"},
		{[]string{"a", "b", "c"}, "a, b and c", "a, b or c", "a, b and 1 more"},
	} {
		if and, or, some := And(c.names), Or(c.names), Some(c.names, 2); and != c.and || or != c.or || some != c.some {
			t.Errorf("%q: %q, %q, %q", c.names, and, or, some)
		}
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		numbers []int
		most    int
		want    string
	}{
		{nil, 0, ""}, {[]int{3}, 0, "3"}, {[]int{0, 1, 2, 3, 8}, 0, "0-3,8"}, {[]int{1, 3, 5}, 0, "1,3,5"},
		{[]int{1, 3, 5, 6, 7}, 2, "1,3 and 3 more"}, {[]int{1, 3, 5, 6, 7}, 3, "1,3,5-7"},
	} {
		if got := Spans(c.numbers, c.most); got != c.want {
			t.Errorf("%v: %q, want %q", c.numbers, got, c.want)
		}
	}
}

func TestRanks(t *testing.T) {
	if got := Ranks([]int{3}) + "; " + Ranks([]int{0, 1, 2, 7}); got != "rank 3; ranks 0-2,7" {
		t.Errorf("got %q", got)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "Größe 数据": "Größe 数据", "a\tb\nc": "a b c",
		"\x1b[1;31mred\x1b[0m": "red", "\x1b[2J\x1b[Hx": "x", "\x1b]0;title\x07x": "\ufffd]0;title\ufffdx", "a\rb\bc": "a\ufffdb\ufffdc",
		"\xff": "\ufffd", "\u202egnp.exe": "\ufffdgnp.exe", "\x7f": "\ufffd",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31m\x9b31m\x1b]0;x\x1b\\")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Printable(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
			t.Errorf("%q: %q", text, got)
		}
	})
}

func TestClipAndQuote(t *testing.T) {
	if got := Clip("äöü", 3); got != "äöü" {
		t.Errorf("%q", got)
	}
	if got := Clip("äöüß", 3); got != "äöü..." {
		t.Errorf("%q", got)
	}
	if got := Quote("a\"b"); got != `"a\"b"` {
		t.Errorf("%s", got)
	}
	if got := Quote(strings.Repeat("ä", 61)); got != `"`+strings.Repeat("ä", 60)+`"...` {
		t.Errorf("%s", got)
	}
}
