package agent

import (
	"github.com/gangrun/gangrun/internal/agent/gang"
	"github.com/gangrun/gangrun/internal/agent/wireup"
	"github.com/gangrun/gangrun/internal/agent/wireup/openmpi"
	"github.com/gangrun/gangrun/internal/agent/wireup/pmi"
	"github.com/gangrun/gangrun/internal/job"
)

// newWireup returns the wire-up of a gang for the MPI that it was started with.
func newWireup(g *gang.Gang) gang.Wireup {
	switch job.MPI(g.Start.Mpi) {
	case job.MPIMPICH:
		return pmi.New(g)
	case job.MPIOpenMPI:
		return openmpi.New(g)
	}
	return wireup.NewNone(g)
}
