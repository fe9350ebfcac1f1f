package endreport

import (
	"strings"
	"testing"
)

// TestFindOnce checks that the line with the code in Open MPI's banner is not a second report.
func TestFindOnce(t *testing.T) {
	text := strings.Split(`mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[11297,1],3]
  Exit code:    143`, "\n")
	all := Find(text, make([]bool, len(text)))
	if len(all) != 1 || all[0].Rank != 3 {
		t.Errorf("got %+v, want one report of rank 3", all)
	}
}
