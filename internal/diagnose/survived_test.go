package diagnose_test

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/job"
)

// TestGoesOn: what follows a sign of failure shows whether the program went on, and not the words of the script that
// has started the program.
func TestGoesOn(t *testing.T) {
	const steps = "step 1 loss 3\nstep 2 loss 2\nstep 3 loss 1\n"
	const raised = "Traceback (most recent call last):\n  File \"train.py\", line 8, in <module>\n    step()\nKeyError: 'label'\n"
	for name, c := range map[string]struct {
		log  string
		want job.Category
	}{
		"uncaught":                      {steps + raised, job.SemanticError},
		"an epilogue":                   {steps + raised + "Cleaning up local scratch ...\nJob finished at Tue Mar  3 11:02:59 CET 2026\n\nreal\t0m41.220s\n", job.SemanticError},
		"one last word":                 {steps + raised + "Collecting logs... done.\n", job.SemanticError},
		"usage":                         {steps + raised + "CPU Efficiency: 3.21% of 04:16:00 core-walltime\nwandb: Synced 5 W&B file(s)\n", job.SemanticError},
		"work after it":                 {steps + raised + "step 4 loss 1\nstep 5 loss 1\nstep 6 loss 1\n", ""},
		"logged again and again":        {"ERROR:root:fold 1 dropped\n" + raised + "ERROR:root:fold 2 dropped\n" + raised + "17 folds used, 2 dropped\n", ""},
		"a name and numbers":            {steps + "permission denied    2  1  57\nCUDA out of memory 0.545\n", ""},
		"how the program was started":   {"git: 7f3e1c9 (main) \"fix crash when the disk is full\"\n" + steps, ""},
		"an early stop":                 {steps + "EarlyStopping: val_loss did not improve for 10 checks, stopping the run\n", ""},
		"an early stop, and a code":     {steps + "EarlyStopping: val_loss did not improve for 10 checks, stopping the run\nsweep: exit status 3\n", job.StoppedEarly},
		"the first step of a script":    {"curl: (7) Failed to connect to h1 port 8080: Connection refused\nFileNotFoundError: [Errno 2] No such file or directory: 'a.pth'\n", job.NetworkError},
		"a supervisor's words":          {steps + "HANG: rank 3 has not reported progress since step 3 (1210 s). Dumping stacks and exiting.\n", job.Hang},
		"a supervisor's words, slow":    {steps + "Node a7 is 2.8x slower than its peers; draining the node and stopping the job.\n", job.Straggler},
		"a message that ends in a verb": {steps + "sampler: temperature ladder is not monotonic, aborting\n", job.SemanticError},
	} {
		if got := diagnose.Diagnose(job.Evidence{Lines: numbered(c.log)}); got.Category != c.want {
			t.Errorf("%s: got %q (%s), want %q", name, got.Category, got.Signature, c.want)
		}
	}
}

// numbered returns the lines of a log that belong to no rank.
func numbered(log string) (lines []job.Line) {
	for i, text := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		lines = append(lines, job.Line{Rank: -1, File: "job.log", Line: i + 1, Text: text})
	}
	return lines
}
