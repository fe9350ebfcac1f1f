package logtext

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOpenings checks programs that begin the lines of their ranks with a number, with two numbers, or with a name that
// a line explains. Numbers of other things are not ranks.
func TestOpenings(t *testing.T) {
	cycle := func(form string, ranks ...any) string { // three lines of each rank
		var b strings.Builder
		for i := range 3 {
			for _, r := range ranks {
				fmt.Fprintf(&b, form+"\n", r, i)
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text string
		want       string // the rank and the text of the last line
	}{
		{"brackets", cycle("(%d) day %d", 0, 2, 1) + "(2) bad day\n", "2|bad day"},
		{"one of several", cycle("%d/3 part %d", 0, 2, 1) + "1/3 no part\n", "1|no part"},
		{"a bar", "0| up\n1| up\n2| up\n1| no library\n0| wait\n", "0|wait"},
		{"a bar after a blank", cycle("%d > day %d", 0, 1, 2) + "2 > bad day\n", "2|bad day"},
		{"a word", cycle("ion %d push %d", 0, 1, 2) + "ion 1 gives up\n", "1|gives up"},
		{"a word for parts", cycle("reader %d block %d", 0, 1, 2) + "reader 1: no file\n", "1|no file"},
		{"a number and a host", cycle("%d h7 ready %d", 0, 2, 1) + "2 h7 leaving\n", "2|h7 leaving"},
		{"the time since the start", cycle("+1.25s r%d | sweep %d", 0, 2, 1) + "+1.50s r2 | bad\n", "2|bad"},
		{"steps", cycle("[%d/3] pass %d", 1, 2, 3) + "[3/3] end\n", "-1|[3/3] end"},
		{"epochs", cycle("epoch %d step %d", 0, 1, 2) + "epoch 2 end\n", "-1|epoch 2 end"},
		{"frames of a stack", cycle("#%d 0x7f%d in f", 0, 1, 2) + "#2 0x7f in g\n", "-1|#2 0x7f in g"},
		{"a trace without a mark", cycle("(%d) day %d", 0, 2, 1) + "Traceback (most recent call last):\n(2) end\n", "-1|(2) end"},
		{"names of hosts and processes", "map: 0->m1:71 1->m1:72\n" + cycle("[%s] day %d", "m1:71", "m1:72") + "[m1:72] bad\n", "1|bad"},
		{"names of processes", "launch: 0=pid71 1=pid72\n" + cycle("pid%d | day %d", 71, 72) + "pid72 | bad\n", "1|bad"},
		{"numbers of processes", "pid map 0:871 1:872\n" + cycle("<%d> day %d", 871, 872) + "<872> bad\n", "1|bad"},
		{"dimensions", "dp=0 tp=0 -> global 0\ndp=1 tp=0 -> global 1\n" + cycle("[dp%d tp0] day %d", 0, 1) + "[dp1 tp0] bad\n", "1|bad"},
		{"a rank each", "rank 0 -> kea:41\nrank 1 -> moa:77\n" + cycle("<%s> day %d", "kea:41", "moa:77") + "<moa:77> bad\n", "1|bad"},
		{"a contradiction", "map: 0->m1:71 0->m1:72\n" + cycle("[%s] day %d", "m1:71", "m1:72") + "[m1:72] bad\n", "-1|[m1:72] bad"},
		{"hosts and processes", cycle("n0.0 day %[2]d\nn0.1 day %[2]d\nn1.%[1]d day %[2]d", 0, 1) + "n1.1 bad\n", "3|bad"},
		{"tensor parallelism", cycle("[tp0 dp0] day %[2]d\n[tp0 dp1] day %[2]d\n[tp1 dp%[1]d] day %[2]d", 0, 1) + "[tp1 dp0] bad\n", "1|bad"},
		{"epochs and batches", "E0/0 a\nE0/1 a\nE1/0 a\nE1/1 a\nE1/1 end\n", "-1|E1/1 end"},
		{"ranks on their host", cycle("h1: [0] day %[2]d\nh1: [1] day %[2]d\nh2: [%[1]d] day %[2]d", 0, 1) + "h2: [1] bad\n", "3|bad"},
	} {
		lines, err := Read(Origin{Name: "log", Rank: -1}, strings.NewReader(c.text), func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		last := lines[len(lines)-1]
		if got := fmt.Sprintf("%d|%s", last.Rank, last.Text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLanesOfOpenings checks that Lanes finds the ranks even if the program does not mark all of its lines.
func TestLanesOfOpenings(t *testing.T) {
	text := []string{"(0) a", "(2) a", "(1) a", "(2) b", "(0) b", "(1) b", "Traceback (most recent call last):", "(0) c"}
	if got, want := Lanes(text), []int{0, 2, 1, 2, 0, 1, -1, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
