package job

// TTY says whether the ranks' standard output is a terminal (a pty) or a pipe. To a terminal,
// most programs write each line at once.
type TTY string

// The choices of a TTY.
const (
	TTYAuto TTY = "auto" // a terminal if the launcher of the MPI library gives one
	TTYOn   TTY = "on"   // always a terminal
	TTYOff  TTY = "off"  // always a pipe
)

// TTYs lists every TTY.
func TTYs() []TTY { return []TTY{TTYAuto, TTYOn, TTYOff} }

// For reports whether the ranks of a gang with that MPI get a terminal. With TTYAuto, only ranks
// of Open MPI get one, as they do from mpirun. MPICH's mpiexec and torchrun give none. An empty
// TTY means TTYAuto.
func (t TTY) For(mpi MPI) bool {
	switch t {
	case TTYOn:
		return true
	case TTYOff:
		return false
	}
	return mpi == MPIOpenMPI
}
