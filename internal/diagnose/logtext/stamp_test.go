package logtext

import (
	"strings"
	"testing"
)

// TestUnstamp checks that times which another tool has written before lines are removed, and those of the program are
// not.
func TestUnstamp(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"ts", "Nov 27 02:00:00 step 1\nNov 27 02:00:01 Traceback (most recent call last):\nNov 27 02:00:01   File \"a.py\", line 1\n", "step 1|Traceback (most recent call last):|  File \"a.py\", line 1"},
		{"container runtime", "2026-01-02T03:04:05.123456789Z stderr F a\n2026-01-02T03:04:05.123456790Z stderr F b\n2026-01-02T03:04:05.223456789Z stdout F \n", "a|b|"},
		{"journald", "Nov 27 02:00:00 n1 train[44]: a\nNov 27 02:00:01 n1 train[44]:   b\nNov 27 02:00:01 n1 train[44]: c\n", "a|  b|c"},
		{"ranks below the times", "2026-01-02 03:04:05 [rank0]: a\n2026-01-02 03:04:05 [rank1]: b\n2026-01-02 03:04:05 [rank1]: c\n", "a|b|c"},
		{"times of the program", "2026-01-02 03:04:05 ERROR caught\nTraceback (most recent call last):\n  File \"a.py\", line 1\nValueError: x\n", "2026-01-02 03:04:05 ERROR caught|Traceback (most recent call last):|  File \"a.py\", line 1|ValueError: x"},
		{"mpirun", "Thu Nov 26 13:15:36 2026[1,0]<stderr>:a\nThu Nov 26 13:15:36 2026[1,1]<stderr>:b\n", "a|b"},
	} {
		lines, err := Read(Origin{Name: "job.log", Rank: -1}, strings.NewReader(c.log), func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, l.Text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, strings.Join(got, "|"), c.want)
		}
	}
}
