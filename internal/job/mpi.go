package job

import (
	"fmt"
	"strings"
)

// MPI is how the ranks of a gang find each other.
type MPI string

// The ways in which ranks find each other.
const (
	MPIAuto    MPI = "auto"    // as the program's MPI library needs it
	MPIMPICH   MPI = "mpich"   // MPICH and its family, over PMI-1
	MPIOpenMPI MPI = "openmpi" // Open MPI, through its own mpirun
	MPINone    MPI = "none"    // by environment variables, without an MPI library
)

// MPIs lists every MPI that a user may ask for.
func MPIs() []MPI { return []MPI{MPIAuto, MPIMPICH, MPIOpenMPI, MPINone} }

// Family returns the usual name of the MPI libraries that m stands for, or "" if m names no library.
func (m MPI) Family() string {
	switch m {
	case MPIMPICH:
		return "MPICH"
	case MPIOpenMPI:
		return "Open MPI"
	}
	return ""
}

// App is one program of a gang that runs several programs (MPMD). Programs are numbered from 0
// in the order of their ranks; MPI_APPNUM has the number.
type App struct {
	Ranks   int               `json:"ranks"` // how many ranks run it
	Command []string          `json:"command"`
	Env     map[string]string `json:"-"` // Env takes precedence over Attempt.Env
	Workdir string            `json:"workdir,omitempty"`
}

// Joined is the state of a rank in the wire-up.
type Joined string

// The values of Joined.
const (
	JoinedUnknown   Joined = ""          // gangrun cannot see the state
	JoinedSilent    Joined = "silent"    // the rank has sent nothing to the process manager
	JoinedInit      Joined = "init"      // the rank has called MPI_Init, which may not have returned yet
	JoinedFinalized Joined = "finalized" // the rank has called MPI_Finalize
)

// Wireup is the state of a gang's wire-up. If a rank is in none of the lists, gangrun does not
// know its state.
type Wireup struct {
	MPI MPI `json:"mpi"`
	// In has the ranks that have called MPI_Init. Waiting has those ranks of In that are still in MPI_Init,
	// where they wait for the other ranks. Silent has the ranks that have sent nothing. All lists are in rank
	// order.
	In      []int `json:"in"`
	Waiting []int `json:"waiting,omitempty"`
	Silent  []int `json:"silent,omitempty"`
	// Answer is true if the controller has asked for this state.
	Answer bool `json:"answer,omitempty"`
	// Ordered is true if Open MPI itself has ordered the gang to end.
	Ordered bool `json:"ordered,omitempty"`
	// Library is the path of the Open MPI library that a silent singleton has initialised.
	Library string `json:"library,omitempty"`
	// Lasting is true if the rank's own program has initialised the library. It is false if
	// only a short-lived tool did so.
	Lasting bool `json:"lasting,omitempty"`
}

// Words describes the wire-up of a gang with that number of ranks, as in "3 of 4 ranks have called
// MPI_Init and wait there for the others; not in MPI_Init: rank 2".
func (up *Wireup) Words(size int) string {
	if len(up.In)+len(up.Silent) == 0 {
		return "which ranks are in MPI_Init cannot be seen"
	}
	text := fmt.Sprintf("%d of %d ranks have called MPI_Init", len(up.In), size)
	switch n := len(up.Waiting); {
	case n > 0 && n == len(up.In) && n < size:
		text += " and wait there for the others"
	case n > 0 && n < len(up.In):
		text += fmt.Sprintf(", %d of them wait for the others there", n)
	}
	if len(up.Silent) > 0 {
		text += "; not in MPI_Init: " + numbers(up.Silent)
	}
	return text
}

// numbers lists ranks, as in "ranks 0, 2". If there are many, it lists the first ones and says how many more there
// are.
func numbers(ranks []int) string {
	const most = 16
	var names []string
	for _, r := range ranks[:min(len(ranks), most)] {
		names = append(names, fmt.Sprint(r))
	}
	if len(ranks) > most {
		names = append(names, fmt.Sprintf("and %d more", len(ranks)-most))
	}
	what := "ranks "
	if len(ranks) == 1 {
		what = "rank "
	}
	return what + strings.Join(names, ", ")
}
