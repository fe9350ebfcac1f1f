// Package survey finds out what the static preflight must know about a host: about the job's program, its
// libraries, its Python, and the paths that the job uses. It knows nothing about gangs.
package survey

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/openmpi"
)

// Surveyor answers surveys of this host.
type Surveyor struct {
	Host     string
	Env      []string          // environment variables of the ranks, as NAME=VALUE
	Children *process.Children // starts helper programs
}

// root has the files of this host or container.
var root = os.DirFS("/")

// Survey returns the facts for which ask asks.
func (v Surveyor) Survey(ctx context.Context, ask job.Survey) job.Facts {
	cores, memory := Capacity()
	facts := job.Facts{Host: v.Host, Cores: cores, Memory: memory, Time: hostclock.Now()}
	facts.Workdir = pathfact.Of(ask.Workdir)
	if facts.Workdir.Kind == job.ErrorNone {
		if err := unix.Access(ask.Workdir, unix.X_OK); facts.Workdir.Dir && err != nil {
			pathfact.Fail(&facts.Workdir, err)
		}
	}
	facts.Program = v.program(ctx, ask)
	if facts.Program.Kind == job.ErrorNone {
		facts.Script = v.script(ctx, ask, facts.Program.Path)
		facts.OpenMPI = v.openMPI(ask.MPI, facts.Program, facts.Script)
	}
	gpus := ask.GPUs != 0 && driverOf(root) != ""
	if ask.Versions || gpus {
		facts.Versions = v.versions(ctx, ask, facts)
	}
	if gpus {
		facts.CUDA = cuda(root, facts.Versions, v.Env)
		facts.Versions = withNCCL(root, facts.Versions, v.Env)
	}
	if !ask.Versions {
		facts.Versions = nil
	}
	for _, input := range ask.Inputs {
		facts.Inputs = append(facts.Inputs, pathfact.Input(pathfact.In(ask.Workdir, input)))
	}
	if ask.CheckpointDir != "" {
		fact := pathfact.TryDirectory(ask.CheckpointDir)
		facts.Check = &fact
	}
	return facts
}

// openMPI returns the Open MPI that would start the program. It returns nil if the program certainly needs none. It
// also looks for Open MPI if the program imports mpi4py, because it is not known yet which MPI library mpi4py uses.
func (v Surveyor) openMPI(asked job.MPI, program job.ProgramFact, script *job.ScriptFact) *job.OpenMPIFact {
	library, python := "", (asked == job.MPIAuto || asked == "") && program.MPI == "" && script != nil && script.MPI4py
	if program.MPI == job.MPIOpenMPI {
		library = program.Library
	} else if asked != job.MPIOpenMPI && !python {
		return nil
	}
	found, _ := openmpi.Find(library, v.Env) // a field of found is empty if that part is not installed
	return &job.OpenMPIFact{Mpirun: found.Mpirun, Daemon: found.Daemon, Version: found.Version}
}
