package roster

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestProcesses checks that tables and lists tell the rank of a process.
func TestProcesses(t *testing.T) {
	for name, text := range map[string]string{
		"a table":             "# rank host pid\n0 q1 900\n1 q1 901\n2 q2 902\n",
		"a table with bars":   "| PID | Rank | Node |\n|-----|------|------|\n| 901 | 1 | q1 |\n| 902 | 2 | q2 |\n",
		"a rank in each line": "rank 1 q1 901\nrank 2 q2 902\n",
		"several in a line":   "start: rank 0 pid 900, rank 1 pid 901, rank 2 pid 902\n",
		"short":               "start: pids 0=900 1=901 2=902\n",
	} {
		l := Log{Rank: -1, Text: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
		for _, t := range l.Text {
			l.Lines = append(l.Lines, job.Line{Rank: -1, Text: t})
		}
		if got := Count([]Log{l}).OfPID(902); got != 2 {
			t.Errorf("%s: got %d, want 2", name, got)
		}
	}
}
