package rankenv

import (
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// threadsOf returns OMP_NUM_THREADS for a rank that shares its machine with other ranks. Without the variable, each
// rank would start one thread per core. The value is the rank's share of the cores. (torchrun sets 1, which leaves
// cores idle.)
//
// threadsOf returns nothing for ranks that use MPI, because mpirun does not set it either, and programs such as GROMACS
// refuse a value that differs from their own arguments.
func threadsOf(a job.Attempt, r job.Rank, spread bool) (env []string) {
	host := a.Placement.Hosts[r.Node]
	beside := a.Placement.Ranks // ranks on the same machine as r; all simulated hosts are one machine
	if spread {
		beside = a.Placement.On(host.Name)
	}
	if !a.NoMPI || len(beside) < 2 || host.Cores < 1 {
		return nil
	}
	share := host.Cores
	gpus, bound := 0, 0 // number of GPUs of the gang, and of ranks that are bound to the same CPUs as r
	for _, other := range beside {
		if other.Node == r.Node {
			gpus += len(other.Devices)
		}
		if other.CPUs == r.CPUs {
			bound++
		}
	}
	if all := len(host.Devices); gpus > 0 && gpus < all {
		share = share * gpus / all // the other cores are for the users of the other GPUs
	}
	share /= len(beside)
	if cpus := topology.CountCPUs(r.CPUs); cpus > 0 {
		share = min(share, cpus/bound)
	}
	return []string{"OMP_NUM_THREADS=" + strconv.Itoa(max(share, 1))}
}
