package job_test

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestTTYFor(t *testing.T) {
	for _, c := range []struct {
		tty  job.TTY
		mpi  job.MPI
		want bool
	}{
		{job.TTYAuto, job.MPIOpenMPI, true}, {job.TTYAuto, job.MPIMPICH, false}, {job.TTYAuto, job.MPINone, false},
		{job.TTYOn, job.MPIOpenMPI, true}, {job.TTYOn, job.MPIMPICH, true}, {job.TTYOn, job.MPINone, true},
		{job.TTYOff, job.MPIOpenMPI, false}, {job.TTYOff, job.MPIMPICH, false}, {job.TTYOff, job.MPINone, false},
		{"", job.MPIOpenMPI, true}, {"", job.MPINone, false},
	} {
		if got := c.tty.For(c.mpi); got != c.want {
			t.Errorf("%q for %s: %t, want %t", c.tty, c.mpi, got, c.want)
		}
	}
}
