package view

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/supervisor/runreport"
)

// TestSummaryCommand: the command in a summary is one line. A shell splits it into the words of the command.
func TestSummaryCommand(t *testing.T) {
	for want, command := range map[string][]string{
		`python train.py --lr=1e-3 /data/x,y`:        {"python", "train.py", "--lr=1e-3", "/data/x,y"},
		`sh -c 'echo rank $RANK ...; sleep 1'`:       {"sh", "-c", "echo rank $RANK ...; sleep 1"},
		`'A=b' A=b`:                                  {"A=b", "A=b"},
		`./a.out '' '*' '~' '#' 'naïve' '{{.Rank}}'`: {"./a.out", "", "*", "~", "#", "naïve", "{{.Rank}}"},
		`echo 'it'\''s' '\' '"'`:                     {"echo", "it's", `\`, `"`},
	} {
		if got := commandLine(t, command); got != want {
			t.Errorf("%q is shown as %s, want %s", command, got, want)
		}
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+want).Output()
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, command) {
			t.Errorf("a shell reads %s as %q, want %q: %v", want, got, command, err)
		}
	}
	hidden := []string{"sh", "-c", "set -e\n\techo 'it'\\", "\x1b[2Jx\xff1\u200b"}
	if got, want := commandLine(t, hidden), `sh -c $'set -e\n\techo \'it\'\\' $'\033[2Jx\3771\342\200\213'`; got != want {
		t.Errorf("%q is shown as %s, want %s", hidden, got, want)
	}
}

func commandLine(t *testing.T, command []string) string {
	t.Helper()
	for _, line := range Summary(runreport.Report{Job: runreport.Job{Run: "r", Command: command}}) {
		if label, text, _ := strings.Cut(line, " "); label == "command" {
			return strings.TrimSpace(text)
		}
	}
	t.Fatalf("the summary has no line for %q", command)
	return ""
}
