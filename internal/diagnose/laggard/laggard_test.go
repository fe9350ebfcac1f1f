package laggard

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/job"
)

// logOf returns the log of a rank with a text.
func logOf(rank int, text string) roster.Log {
	l := roster.Log{Rank: rank, Text: strings.Split(text, "\n")}
	for _, t := range l.Text {
		l.Lines = append(l.Lines, job.Line{Rank: rank, Text: t})
	}
	return l
}

// TestNear checks that lines at a sign, also those of a list, name the rank for which others wait.
func TestNear(t *testing.T) {
	for text, want := range map[string]int{
		"Timed out\nrank 5 did not reach the barrier":                                                            5,
		"Barrier timed out\nThe first task at the barrier: /task:3. Some timed out task names:\n/job:j/task:6\n": 6,
		"Stalled ranks:\n2: [grad_1, grad_2]":                                                                    2,
		"This is most likely because rank 3 is missing":                                                          -1,
		"worker rank=1 pid=511 last heartbeat 661.0 s ago":                                                       1,
	} {
		l := logOf(-1, text)
		if got := Near(l.Text, 0, 1); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestLost checks that the lost rank is the one that others have lost and that has itself lost none.
func TestLost(t *testing.T) {
	for text, want := range map[string]int{
		"rank 6: peer 5 closed the connection\nrank 0: peer 6 closed the connection": 5,
		"rank 1: lost connection to rank 2\nrank 3: lost connection to rank 2":       2,
		"rank 1: lost connection to rank 2\nrank 2: lost connection to rank 1":       -1,
	} {
		if got := Lost([]roster.Log{logOf(-1, text)}); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestOdd checks that the odd rank is the one that most messages name, or else the second of two.
func TestOdd(t *testing.T) {
	for _, c := range []struct {
		messages []string
		want     int
	}{
		{[]string{"Rank 0 has 27 params, while rank 1 has 39", "Rank 2 has 27 params, while rank 1 has 39"}, 1},
		{[]string{"Rank 0 is running A, but Rank 4 is running B", "Rank 1 is running A, but Rank 4 is running B", "Rank 4 is running B, but Rank 0 is running A"}, 4},
		{[]string{"rank 0 version 22105 rank 6 version 21805"}, 6},
		{[]string{"Rank 0 is alone"}, -1},
	} {
		if got := Odd(c.messages); got != c.want {
			t.Errorf("%q: got %d, want %d", c.messages, got, c.want)
		}
	}
}

// TestSilent checks that the silent rank is the only one that did not print what all others printed.
func TestSilent(t *testing.T) {
	for text, want := range map[string]int{
		"rank 0: ready\nrank 1: ready\nrank 2: ready\nrank 0: wrote\nrank 2: wrote":                1,
		"rank 0: ready\nrank 1: ready\nrank 2: ready\nrank 0: wrote":                               -1,
		"rank 0: a\nrank 1: a\nrank 2: a\nrank 0: b\nrank 1: b\nrank 0: c\nrank 2: c\nrank 2: end": -1,
	} {
		if got := Silent([]roster.Log{logOf(-1, text)}); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestSlow checks that the slow rank is found in a report that also names the rank that reports.
func TestSlow(t *testing.T) {
	for text, want := range map[string]int{
		"[rank 0] straggler detected: rank 3 is 9.0x slower than the median": 3,
		"10:00:00 dlrm rank0 rank 2 is 12.8x slower than the median":         2,
		"slow rank 12 found":     12,
		"rank 4 lags behind":     4,
		"no straggler was found": -1,
	} {
		if got := Slow(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestApart checks that a rank is found whose stack differs from those of all others.
func TestApart(t *testing.T) {
	wait := "  File \"/t/distributed_c10d.py\", line 3 in barrier\n  File \"/w/fit.py\", line 9 in step"
	for _, c := range []struct {
		stacks []string
		want   int
	}{
		{[]string{wait, "  File \"/w/data.py\", line 4 in read", wait}, 1},
		{[]string{wait, wait, "  File \"/t/distributed_c10d.py\", line 3 in barrier\n  File \"/w/fit.py\", line 30 in check"}, 2},
		{[]string{wait, wait, wait}, -1},
	} {
		var logs []roster.Log
		for r, s := range c.stacks {
			logs = append(logs, logOf(r, s))
		}
		if got := Apart(logs, roster.Count(logs)); got != c.want {
			t.Errorf("%q: got %d, want %d", c.stacks, got, c.want)
		}
	}
}

// TestListed checks that the ranks are found which a launcher considers lost.
func TestListed(t *testing.T) {
	for text, want := range map[string]int{
		"ssh: connect to host c-06 port 22: No route to host\nnode c-06 does not answer, ranks 4 5 presumed dead": 4,
		"ssh: connect to host c-06 port 22: No route to host\nworker 3 is gone":                                   3,
		"ssh: connect to host c-06 port 22: No route to host\nranks 4 5 are ready":                                -1,
	} {
		if got := Listed(strings.Split(text, "\n"), 0, 1); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestApartOneLine checks stacks that stand in one line each or below a headline.
func TestApartOneLine(t *testing.T) {
	for text, want := range map[string]int{
		"stack rank 0 (pid 10): allreduce_ (dist.py:1) < train (a.py:2)\nstack rank 1 (pid 11): get (queue.py:1) < train (a.py:2)\nstack rank 2 (pid 12): allreduce_ (dist.py:1) < train (a.py:2)": 1,
		"STAT merged 64 traces:\n 63 x  main > MPI_Allreduce\n  1 x  main > recv_ghosts_ > MPI_Probe   [ranks: 41]":                                                                                41,
		"7 processes in ncclAllReduce (ranks 0-2,4-7)\n1 process in pread64 (rank 3)":                                                                                                              3,
		"2 ranks [0,1]: main -> MPI_Barrier\n1 rank [2]: main -> write\n1 rank [3]: main -> read":                                                                                                  -1,
		"Process 1: x (rank 0, state S)\n  MPI_Barrier (libmpi.so)\nProcess 2: x (rank 1, state S)\n  omp_set_lock (libgomp.so)":                                                                   1,
		"==== rank 0 ====\n#1 0x1 in PMPI_Allreduce () from a\n==== rank 1 ====\n#1 0x2 in PMPI_Recv () from a\n==== rank 2 ====\n#1 0x3 in MPI_Allreduce () from b":                               1,
		"==== rank 0 ====\n    all_to_all (dist.py:1)\n==== rank 1 ====\n    all_to_all (dist.py:1)\n==== rank 2 ====\n    acquire (threading.py:3)":                                               2,
	} {
		logs := []roster.Log{logOf(-1, text)}
		if got := Apart(logs, roster.Count(logs)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
