package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// beatsSource is a program that reports its progress to gangrun by itself.
const beatsSource = "testdata/mpi/beats.c"

// TestMPIHeartbeats checks that gangrun counts the progress that ranks report by themselves, with every MPI library.
// gangrun must then ignore the progress in their output.
func TestMPIHeartbeats(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	for _, flavour := range mpiFlavours {
		program := mpiProgram(t, beatsSource, flavour)
		for _, hosts := range []string{"0", "2"} {
			t.Run(fmt.Sprintf("%s on %s", flavour, hosts), func(t *testing.T) {
				t.Parallel()
				r := newBench(t).start(nil, "--preflight", "off", "--loopback", hosts, "-n", "4", "--", program)
				if code := r.finish(); code != 0 {
					t.Errorf("exit code %d, want 0", code)
				}
				r.gone()
				attempt := r.report().Last()
				if attempt.Step != 23 || attempt.Total != 100 || attempt.Loss == nil || *attempt.Loss != 0.25 {
					t.Errorf("reached step %d/%d, want 23/100", attempt.Step, attempt.Total)
				}
				for rank := range 4 {
					if _, err := os.Stat(filepath.Join(attempt.Logs, job.LogName(rank, "heartbeat"))); err != nil {
						t.Errorf("rank %d has not touched its file: %v", rank, err)
					}
				}
			})
		}
	}
}
