package suggest

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"rank", "rank", 0}, {"rnak", "rank", 1}, {"rak", "rank", 1},
		{"rankk", "rank", 1}, {"renk", "rank", 1}, {"ab", "ba", 1}, {"abc", "cab", 2}, {"hosts", "ranks", 4},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"ranks", "retries", "hosts", "hostfile", "checkpoint-dir", "slots", "max_slots", "NodeName", "env", "n", "off", "on"}
	for text, want := range map[string]string{
		"rank": "ranks", "RANKS": "ranks", "rnaks": "ranks", "host": "hosts", "host-file": "hostfile", "slot": "slots", "max_slot": "max_slots",
		"checkpoint_dir": "checkpoint-dir", "checkpoint": "checkpoint-dir", "check": "checkpoint-dir", "nodname": "NodeName", "evn": "env", "of": "off", "retry": "retries", "retrys": "retries", "environment": "",
		"": "", "x": "", "foo": "", "m": "", "kubernetes": "", "数据": "", strings.Repeat("ranks", 1000): "",
	} {
		if got := Nearest(text, names); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	if got := DidYouMean("rank", []string{"ranks"}); got != `, did you mean "ranks"?` {
		t.Error(got)
	}
	if got := DidYouMean("x", []string{"ranks"}); got != "" {
		t.Error(got)
	}
}
