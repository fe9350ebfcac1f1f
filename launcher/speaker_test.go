package launcher

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSpeaker checks which rank a line of mpirun belongs to. If ranks on two hosts have the
// same process ID, a line with that ID belongs to no rank.
func TestSpeaker(t *testing.T) {
	w := &wiring{mpi: job.MPIOpenMPI, openmpi: openmpiState{pids: map[int]int{}}}
	for _, p := range [][2]int{{120, 0}, {121, 1}, {120, 2}, {121, 1}, {120, 2}} { // PID and rank
		w.openmpi.started(p[0], p[1])
	}
	for text, want := range map[string]int{"[n1:121] *** An error occurred": 1, "[n1:120] *** An error occurred": -1, "[n1:9] x": -1, "x": -1} {
		if got := w.speaker(text); got != want {
			t.Errorf("%q belongs to rank %d, want %d", text, got, want)
		}
	}
}
