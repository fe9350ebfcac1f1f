package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestMPIMessages: what rank 0 said before the gang ended is the cause, and such an end is
// not tried again.
func TestMPIMessages(t *testing.T) {
	const style = "ERROR: Unrecognized pair style 'foo' (src/force.cpp:278); Last command: pair_style foo"
	for mode, want := range map[string]struct {
		category  job.Category
		signature string
		text      string
		attempts  int
	}{
		"one-aborts":   {job.IncorrectInputs, "program-input", style, 1},
		"all-abort":    {job.IncorrectInputs, "program-input", `Error in routine read_namelists (1): bad line in namelist &electrons: " conv_thrr=1d-8"`, 1},
		"stderr-abort": {job.SemanticError, "program-error", "Fatal error: There is no domain decomposition for 3 ranks that is compatible with the given box and a minimum cell size of 1.2 nm", 1},
		"all-exit":     {job.IncorrectInputs, "program-input", style, 1},
		"stop":         {job.SemanticError, "program-error", "STOP the grid has no points", 1},
		"bare":         {job.MPIError, "mpi-abort", "", 2},
		"crash":        {job.InvalidMemoryAccess, "", "", 2},
	} {
		for _, flavour := range mpiFlavours {
			program := mpiProgram(t, "testdata/mpi/speak.c", flavour)
			t.Run(fmt.Sprintf("%s/%s", mode, flavour), func(t *testing.T) {
				r := newBench(t).start(nil, "--mpi", string(flavour), "--preflight", "off", "--retries", "1", "-n", "3", "--", program, mode)
				code := r.finish()
				r.gone()
				report := r.report()
				if code == 0 || report.State != job.StateFailed || len(report.Attempts) != want.attempts {
					t.Fatalf("exit code %d, state %s, %d attempts, want a failure after %d", code, report.State, len(report.Attempts), want.attempts)
				}
				c := report.Attempts[0].Cause
				if c == nil || c.Category != want.category || want.signature != "" && c.Signature != want.signature || c.Rank != 0 || !strings.HasSuffix(c.Text, want.text) {
					t.Errorf("cause %+v, want %+v of rank 0", c, want)
				}
			})
		}
	}
}
