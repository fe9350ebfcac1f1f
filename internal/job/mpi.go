package job

import (
	"fmt"
	"strings"
)

// MPI says how the ranks of a gang find each other.
type MPI string

// The ways in which ranks find each other.
const (
	MPIAuto    MPI = "auto"    // by the MPI library that the program uses
	MPIMPICH   MPI = "mpich"   // MPICH and its family, over PMI-1
	MPIOpenMPI MPI = "openmpi" // Open MPI, through its own mpirun
	MPINone    MPI = "none"    // by what the environment says alone
)

// MPIs lists every MPI that a user may ask for.
func MPIs() []MPI { return []MPI{MPIAuto, MPIMPICH, MPIOpenMPI, MPINone} }

// App is one program of a gang of several (MPMD). Its number, from 0 in the
// order of the ranks, is MPI_APPNUM.
type App struct {
	Ranks   int               `json:"ranks"` // how many ranks run it
	Command []string          `json:"command"`
	Env     map[string]string `json:"-"` // over Attempt.Env
	Workdir string            `json:"workdir,omitempty"`
}

// Joined is how far a rank has come in finding the others.
type Joined string

// What can be seen of a rank.
const (
	JoinedUnknown   Joined = ""          // nobody can see it
	JoinedSilent    Joined = "silent"    // it never spoke to the process manager
	JoinedInit      Joined = "init"      // it is in MPI_Init, or past it
	JoinedFinalized Joined = "finalized" // it has called MPI_Finalize
)

// Wireup is how far the ranks of a gang have found each other. Ranks in none
// of the lists cannot be seen.
type Wireup struct {
	MPI MPI `json:"mpi"`
	// In are the ranks in MPI_Init or past it, Waiting those of them that wait
	// for the others there, Silent those that never spoke; in rank order.
	In      []int `json:"in"`
	Waiting []int `json:"waiting,omitempty"`
	Silent  []int `json:"silent,omitempty"`
	// Answer says that somebody has asked.
	Answer bool `json:"answer,omitempty"`
	// Ordered says that Open MPI itself wants the gang to end.
	Ordered bool `json:"ordered,omitempty"`
	// Library is the Open MPI, as a path, that a rank has initialised though it was
	// not started by Open MPI: it believes to be rank 0 of 1.
	Library string `json:"library,omitempty"`
	// Lasting says that it is no tool that a rank has used for a moment.
	Lasting bool `json:"lasting,omitempty"`
}

// Words says who is in and who is not, of a gang of that size, as in "3 of 4
// ranks have called MPI_Init and wait there for the others; never spoke: rank 2".
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
		text += "; never spoke: " + numbers(up.Silent)
	}
	return text
}

// numbers names ranks, the first few of many.
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
