package job

// TTY says whether the ranks' standard output is a terminal (a pty) or a pipe. Most programs write each line at
// once to a terminal, but collect lines for a pipe.
type TTY string

// The choices of a TTY.
const (
	TTYAuto TTY = "auto" // a terminal if the launcher of the MPI library gives ranks a terminal
	TTYOn   TTY = "on"   // always a terminal
	TTYOff  TTY = "off"  // always a pipe
)

// TTYs lists every TTY.
func TTYs() []TTY { return []TTY{TTYAuto, TTYOn, TTYOff} }

// For reports whether ranks get a terminal in a gang that uses the MPI library mpi. With TTYAuto, only ranks of Open MPI
// get a terminal, as they do from mpirun. MPICH's mpiexec and torchrun give ranks no terminal. An empty TTY
// means TTYAuto.
func (t TTY) For(mpi MPI) bool {
	switch t {
	case TTYOn:
		return true
	case TTYOff:
		return false
	}
	return mpi == MPIOpenMPI
}
