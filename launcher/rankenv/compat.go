package rankenv

import (
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

// compatOf returns the variables that mpirun and mpiexec set for a rank. They are for programs that read these
// variables but do not use MPI.
func compatOf(a job.Attempt, r job.Rank) (env []string) {
	set := func(name string, value int) { env = append(env, name+"="+strconv.Itoa(value)) }
	size := len(a.Placement.Ranks)
	if a.EnvCompat.Includes(job.EnvCompatOpenMPI) {
		set("OMPI_COMM_WORLD_RANK", r.Rank)
		set("OMPI_COMM_WORLD_SIZE", size)
		set("OMPI_COMM_WORLD_LOCAL_RANK", r.LocalRank)
		set("OMPI_COMM_WORLD_LOCAL_SIZE", r.LocalSize)
		set("OMPI_COMM_WORLD_NODE_RANK", r.LocalRank) // despite its name, this is the number of the rank on its host
	}
	if a.EnvCompat.Includes(job.EnvCompatMPICH) {
		set("PMI_RANK", r.Rank)
		set("PMI_SIZE", size)
		set("MPI_LOCALRANKID", r.LocalRank)
		set("MPI_LOCALNRANKS", r.LocalSize)
	}
	return env
}
