package survey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/agent/agenttest"
	"github.com/gangrun/gangrun/internal/agent/process/processtest"
	"github.com/gangrun/gangrun/internal/job"
)

// TestSurveyMPI checks that the survey reports the MPI library that a program needs, and its version.
func TestSurveyMPI(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	agenttest.WriteFile(t, dir+"/mpi.c", "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n", 0o644)
	for _, mpi := range []string{"mpich", "openmpi"} {
		agenttest.Compile(t, dir, "mpicc."+mpi, "-o", mpi, "mpi.c")
	}
	agenttest.WriteFile(t, dir+"/four.py", "from mpi4py import MPI\n", 0o644)
	agenttest.WriteFile(t, dir+"/none.py", "import os\n", 0o644)
	v := Surveyor{Host: "h1", Env: os.Environ(), Children: processtest.New(t)}
	for _, c := range []struct {
		command  string
		asked    job.MPI
		mpi      job.MPI
		library  string // the beginning of its name
		launcher bool   // whether the host must report its mpirun
	}{
		{"./mpich", job.MPIAuto, job.MPIMPICH, "libmpich.so.12.", false},
		{"./openmpi", job.MPIAuto, job.MPIOpenMPI, "libmpi.so.40.", true},
		{"./openmpi", "", job.MPIOpenMPI, "libmpi.so.40.", true},
		{"./mpich", job.MPIOpenMPI, job.MPIMPICH, "libmpich.so.12.", true},
		{"/bin/sh", job.MPIAuto, "", "", false},
		{"/bin/sh", job.MPIOpenMPI, "", "", true},
		{python + " four.py", job.MPIAuto, "", "", true},
		{python + " four.py", job.MPIMPICH, "", "", false},
		{python + " four.py", job.MPINone, "", "", false},
		{python + " none.py", job.MPIAuto, "", "", false},
		{python + " none.py", job.MPIOpenMPI, "", "", true},
	} {
		got := v.Survey(t.Context(), job.Survey{Command: strings.Fields(c.command), Workdir: dir, MPI: c.asked})
		library := got.Program.Library
		if got.Program.MPI != c.mpi || filepath.IsAbs(library) != (c.library != "") || c.library != "" && !strings.HasPrefix(filepath.Base(library), c.library) {
			t.Errorf("%s: got %+v, want %q and a path of %s...", c.command, got.Program, c.mpi, c.library)
		}
		switch o := got.OpenMPI; {
		case (o != nil) != c.launcher:
			t.Errorf("%s, asked for %q: got %+v of Open MPI, want any: %t", c.command, c.asked, o, c.launcher)
		case o != nil && (!filepath.IsAbs(o.Mpirun) || !filepath.IsAbs(o.Daemon) || !strings.HasPrefix(o.Version, "4.")):
			t.Errorf("%s, asked for %q: got %+v of Open MPI", c.command, c.asked, o)
		}
	}
}

func TestImportsMPI4py(t *testing.T) {
	if !agenttest.Alone(t) {
		return
	}
	dir := t.TempDir()
	v := Surveyor{Host: "h1", Env: os.Environ(), Children: processtest.New(t)}
	for _, c := range []struct {
		source          string
		compiled, guess bool
	}{
		{"import mpi4py\n", true, true},
		{"from mpi4py import MPI\n", true, true},
		{"from mpi4py.futures import MPIPoolExecutor\n", true, true},
		{"import mpi4py.MPI as M\n", true, true},
		{"import os, sys as s, mpi4py.MPI\n", true, true},
		{"def f():\n\tif True:\n\t\tfrom mpi4py import MPI\n", true, true},
		{"try: import mpi4py\nexcept ImportError: pass\n", true, true},
		{"x = 1; import mpi4py\n", true, true},
		{"import os\nprint(os)\n", false, false},
		{"import mpi4py_fft\nfrom mpi4pyx import y\n", false, false},
		{"from .mpi4py import x\nfrom . import mpi4py\n", false, false},
		{"import x.mpi4py\n", false, false},
		{"# import mpi4py\nprint('import mpi4py')\n", false, false},
		{"'''\nimport mpi4py\n'''\n", false, true}, // only a compiler can know that this is no import
		{"from mpi4py import (\n", true, true},     // this does not compile
		{"", false, false},
	} {
		agenttest.WriteFile(t, dir+"/x.py", c.source, 0o644)
		for _, compile := range []bool{true, false} {
			want := c.guess
			if compile {
				want = c.compiled
			}
			commands := [][]string{{python, "x.py"}}
			if c.source != "" {
				commands = append(commands, []string{python, "-c", c.source})
			}
			for _, command := range commands {
				got := v.script(t.Context(), job.Survey{Command: command, Workdir: dir, Compile: compile}, python)
				if got == nil || got.MPI4py != want {
					t.Errorf("%q, compile %t: got %+v, want MPI4py %t", command, compile, got, want)
				}
			}
		}
	}
}
