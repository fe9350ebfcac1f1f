package job

// TTY says whether the ranks' standard output is a terminal (a pty), which
// makes a program write each line at once, or a pipe.
type TTY string

// The choices of a TTY.
const (
	TTYAuto TTY = "auto" // a terminal if the MPI's own launcher gives one
	TTYOn   TTY = "on"   // always a terminal
	TTYOff  TTY = "off"  // always a pipe
)

// TTYs lists every TTY.
func TTYs() []TTY { return []TTY{TTYAuto, TTYOn, TTYOff} }

// For reports whether the ranks of a gang of that MPI get a terminal. Under TTYAuto, only ranks of
// Open MPI do, because mpirun gives them one; MPICH's mpiexec and torchrun do not. The zero TTY is
// TTYAuto.
func (t TTY) For(mpi MPI) bool {
	switch t {
	case TTYOn:
		return true
	case TTYOff:
		return false
	}
	return mpi == MPIOpenMPI
}
