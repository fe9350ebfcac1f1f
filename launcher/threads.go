package launcher

import (
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// threadsOf is OMP_NUM_THREADS for a rank, where several ranks are on its machine:
// else each of them would start a thread for every core. It is the rank's share of
// the cores, where torchrun sets 1: that leaves cores idle.
//
// Ranks that use MPI are left alone, as by mpirun: programs such as GROMACS refuse a
// number of threads that is not the one of their own arguments.
func threadsOf(a job.Attempt, r job.Rank, spread bool) (env []string) {
	host := a.Placement.Hosts[r.Node]
	beside := a.Placement.Ranks // on the same machine; simulated hosts are one
	if spread {
		beside = a.Placement.On(host.Name)
	}
	if !a.NoMPI || len(beside) < 2 || host.Cores < 1 {
		return nil
	}
	share := host.Cores
	gpus, bound := 0, 0 // of the gang, and ranks bound to the same CPUs as r
	for _, other := range beside {
		if other.Node == r.Node {
			gpus += len(other.Devices)
		}
		if other.CPUs == r.CPUs {
			bound++
		}
	}
	if all := len(host.Devices); gpus > 0 && gpus < all {
		share = share * gpus / all // the rest is for those who have the other GPUs
	}
	share /= len(beside)
	if cpus := topology.CountCPUs(r.CPUs); cpus > 0 {
		share = min(share, cpus/bound)
	}
	return []string{"OMP_NUM_THREADS=" + strconv.Itoa(max(share, 1))}
}
