package survey

import (
	"context"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/job"
)

// driverVersion is a file that has the version of the loaded NVIDIA driver. Reading the file does not call the driver,
// which may hang.
const driverVersion = "/sys/module/nvidia/version"

// versions returns the versions of everything that should be the same on all hosts of a gang. It leaves out what is not
// installed.
func (v Surveyor) versions(ctx context.Context, ask job.Survey, facts job.Facts) (list []job.VersionFact) {
	if driver := driverOf(root); driver != "" {
		list = append(list, job.VersionFact{Kind: job.VersionDriver, Name: "the NVIDIA driver", Version: driver})
	}
	if facts.Program.Kind != job.ErrorNone {
		return list
	}
	list = append(list, v.libraries(ctx, facts.Program.Path)...)
	list = append(list, v.packages(ctx, ask, facts)...)
	if facts.Script != nil && facts.Script.MPI4py {
		if module := v.MPI4py(ctx, ask.Command, ask.Workdir, facts.Program.Path); module != "" {
			if _, library := mpilib.Of(module, v.Env); library != "" {
				list = append(list, job.VersionFact{Kind: job.VersionMPI, Name: "the MPI library of mpi4py", Version: buildOf(library)})
			}
		}
	}
	return list
}
