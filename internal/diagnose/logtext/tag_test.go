package logtext

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTags checks that each line gets the rank in its tag and loses the tag.
func TestTags(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // rank, host and text of each line
	}{
		{"srun below a header", "Loading gcc\n0: a\n1: b\n0: c\n", []string{"-1||Loading gcc", "0||a", "1||b", "0||c"}},
		{"times are no ranks", "13:15:01 a\n13:15:02 b\n13:15:03 c\n", []string{"-1||13:15:01 a", "-1||13:15:02 b", "-1||13:15:03 c"}},
		{"mpirun has two ranks on a line", "[1,0]<stdout>:a[1,2]<stderr>:b\n", []string{"0||a", "2||b"}},
		{"mpirun has one rank twice on a line", "[1,0]<stdout>:a[1,0]<stdout>:b\n", []string{"0||ab"}},
		{"hydra has two ranks on a line", "[0] a\n[1] b\n[0] c[1] d\n[1] e\n", []string{"0||a", "1||b", "0||c", "1||d", "1||e"}},
		{"a tag stays before a carriage return", "[0] a\n[1] b\n[0] \r 10%\r 20%\n[1] c\n", []string{"0||a", "1||b", "0|| 20%", "1||c"}},
		{"hosts above ranks", "n1: [0] a\nn1: [1] b\nn2: [2] c\nn2: [2] d\n", []string{"0|n1|a", "1|n1|b", "2|n2|c", "2|n2|d"}},
		{"a number of hosts above ranks", "0: [rank0]: a\n1: [rank9]: b\n0: [rank0]: c\n1: d\n", []string{"0||a", "9||b", "0||c", "-1||d"}},
		{"angles", "<0> a\n<1> b\n<0> c\n<1> d\n", []string{"0||a", "1||b", "0||c", "1||d"}},
		{"DeepSpeed", "worker-1: [2026-01-01 09:00:02,118] [INFO] [launch.py:1] a\nworker-2: b\nworker-1: c\nworker-2: d\n", []string{"-1|worker-1|[2026-01-01 09:00:02,118] [INFO] [launch.py:1] a", "-1|worker-2|b", "-1|worker-1|c", "-1|worker-2|d"}},
		{"TensorFlow", "[chief] a\n[worker-1] b\n[chief] c\n[worker-1] d\n[worker-2] e\n", []string{"0||a", "1||b", "0||c", "1||d", "2||e"}},
	} {
		lines, err := Read(Origin{Name: "log", Rank: -1}, strings.NewReader(c.text), func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, fmt.Sprintf("%d|%s|%s", l.Rank, l.Host, l.Text))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
