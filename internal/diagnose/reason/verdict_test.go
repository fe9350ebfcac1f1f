package reason_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/reason"
)

// TestVerdict checks that the words of many supervising programs show why they ended a job.
func TestVerdict(t *testing.T) {
	for text, want := range map[string]string{
		"asha; stopping trial_0012 at rung 1":                                        "own-early-stop",
		"val_loss has plateaued over 5 evaluations; ending the run":                  "own-early-stop",
		"run 7 is not promising; terminated":                                         "own-early-stop",
		"target accuracy unreachable, aborting this configuration":                   "own-early-stop",
		"rank 5 is too slow; shutting down the job":                                  "reported-straggler",
		"rank 3 takes 9.3 s per step while the median is 1.1 s; stopping":            "reported-straggler",
		"PE 12 is the bottleneck; giving up":                                         "reported-straggler",
		"c12 runs at 41% of the speed of the other nodes; ending the run":            "reported-straggler",
		"step counter has been 41 for 1800 s; killing the job":                       "no-progress",
		"GPU utilisation 0% on all ranks for 25 min, considering it dead; scancel 9": "no-progress",
		"no log line for 30 min; killing the process group":                          "no-progress",
		"no slow ranks found; stopping the monitor":                                  "",
		"energy has not changed in 10 steps, converged; stopping":                    "",
		"the budget of 3 node hours is used up; stopping":                            "",
	} {
		if got := reason.Verdict(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
