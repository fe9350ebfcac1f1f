package preflight

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// slips has the signatures of mistyped commands.
var slips = []string{"program-here", "program-assignment", "program-quoted", "program-shell"}

// TestSlips: the finding about a command with a common mistake has a hint of one line that says what to type.
func TestSlips(t *testing.T) {
	const general = "program-missing"
	shown := map[string]bool{}
	for _, c := range []struct {
		command         []string
		here, execute   bool
		signature, hint string
	}{
		{[]string{"train.py"}, true, true, "program-here", "write python3 train.py, or ./train.py"},
		{[]string{"run.sh", "3"}, true, true, "program-here", "write sh run.sh, or ./run.sh"},
		{[]string{"a.out"}, true, true, "program-here", "write ./a.out"},
		{[]string{"LR=1", "python3", "x.py"}, false, false, "program-assignment", "write -e LR=1 before the command"},
		{[]string{"LR=1", "OPT=b", "python3", "E=5"}, false, false, "program-assignment", "write -e LR=1 -e OPT=b before the command"},
		{[]string{"LR=1 python3 x.py"}, false, false, "program-quoted", "remove the quotes: -e LR=1 -- python3 x.py"},
		{[]string{"python3 arg.py"}, false, false, "program-quoted", "remove the quotes: python3 arg.py"},
		{[]string{"python3 /srv/arg.py --lr", "3"}, false, false, "program-quoted", "remove the quotes: python3 /srv/arg.py --lr 3"},
		{[]string{"cd", "/tmp"}, false, false, "program-shell", "write sh -c 'cd /tmp'"},
		{[]string{"cd /tmp && python3 x.py"}, false, false, "program-shell", "write sh -c 'cd /tmp && python3 x.py'"},
		{[]string{"python3 x.py > 'a b'"}, false, false, "program-shell", `write sh -c 'python3 x.py > '\''a b'\'''`},
		{[]string{"source", "env.sh"}, false, false, "program-shell", "write bash -c 'source env.sh'"},
		{[]string{"module", "load", "mpi"}, false, false, "program-shell", "write bash -lc 'module load mpi'"},

		{[]string{"train.py"}, true, false, "program-here", "write python3 train.py"},
		{[]string{"job.yaml"}, true, false, general, ""},
		{[]string{"trian"}, false, false, general, ""},
		{[]string{"train.py"}, false, false, general, ""},
		{[]string{"./train.py"}, false, false, general, ""},
		{[]string{"/srv/my runs/train"}, false, false, general, ""},
		{[]string{"trian", "LR=1"}, false, false, general, ""},
	} {
		s := testSpec()
		s.Command = c.command
		facts := soundFacts(2)
		for i := range facts {
			facts[i].Program = job.ProgramFact{PathFact: broken("", job.ErrorMissing, "not found")}
			if c.here {
				facts[i].Program.Here, facts[i].Program.Executable = "/w/"+c.command[0], c.execute
			}
			facts[i].Script = nil
		}
		all := Static(s, facts)
		if len(all) != 1 || all[0].Cause == nil {
			t.Errorf("%q: got %+v", c.command, all)
			continue
		}
		got := all[0]
		shown[got.Cause.Signature] = true
		checkFinding(t, got)
		if got.Cause.Signature != c.signature || c.hint != "" && got.Hint != c.hint || strings.Contains(got.Hint, "\n") ||
			got.Cause.Category != job.LaunchError || !strings.Contains(got.Text, quote(c.command[0])) {
			t.Errorf("%q: got %s, hint %q, want %s, hint %q: %s", c.command, got.Cause.Signature, got.Hint, c.signature, c.hint, got.Text)
		}
	}
	for _, signature := range slips {
		if !shown[signature] {
			t.Errorf("no case shows %s", signature)
		}
	}
}
