package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// needs sets which MPI and which library the program of a host needs.
func needs(f *job.Facts, mpi job.MPI, library string) {
	f.Script, f.Program.MPI, f.Program.Library = nil, mpi, library
	if mpi == job.MPIOpenMPI {
		f.OpenMPI = &job.OpenMPIFact{Mpirun: "/usr/bin/mpirun", Daemon: "/usr/bin/orted", Version: "4.1.4"}
	}
}

func openMPI(f *job.Facts) { needs(f, job.MPIOpenMPI, "/usr/lib/libmpi.so.40.30.4") }

func mpich(f *job.Facts) { needs(f, job.MPIMPICH, "/usr/lib/libmpich.so.12.2.2") }

// perHost changes the facts of each host with its own function.
func perHost(change ...func(*job.Facts)) func([]job.Facts) {
	return func(facts []job.Facts) {
		for i := range facts {
			change[i](&facts[i])
		}
	}
}

var mpiCases = []struct {
	name   string
	asked  job.MPI
	hosts  int
	change func([]job.Facts)
	want   []string // findings in the form of staticCases
}{
	{"no MPI", job.MPIAuto, 2, on(func(*job.Facts) {}), nil},
	{"no MPI where one is asked for", job.MPIMPICH, 2, on(func(*job.Facts) {}), nil},
	{"MPICH", job.MPIAuto, 3, on(mpich), nil},
	{"MPICH, as asked", job.MPIMPICH, 3, on(mpich), nil},
	{"Open MPI", job.MPIAuto, 3, on(openMPI), nil},
	{"Open MPI, as asked", job.MPIOpenMPI, 3, on(openMPI), nil},
	{"Open MPI, asked of Python", job.MPIOpenMPI, 1, on(func(f *job.Facts) { openMPI(f); f.Program.MPI, f.Program.Library = "", "" }), nil},
	{"Open MPI, and the others do not care", job.MPINone, 2, perHost(openMPI, mpich), nil},
	{"nobody has asked about mpirun", job.MPIAuto, 1, on(func(f *job.Facts) { openMPI(f); f.OpenMPI = nil }), nil},
	{"mpirun for mpi4py may be missing: it may be MPICH's", job.MPIAuto, 1, on(func(f *job.Facts) { f.OpenMPI = &job.OpenMPIFact{} }), nil},
	{"MPICH where mpirun is missing", job.MPIAuto, 1, on(func(f *job.Facts) { mpich(f); f.OpenMPI = &job.OpenMPIFact{} }), nil},

	{"Open MPI for MPICH", job.MPIMPICH, 2, on(openMPI),
		[]string{`mpi error mpi-error : the program "/bin/train" needs the library of Open MPI (/usr/lib/libmpi.so.40.30.4), but --mpi says mpich: each rank would take itself for the only one (on all 2 hosts)`}},
	{"MPICH for Open MPI, without its commands", job.MPIOpenMPI, 1, on(func(f *job.Facts) { mpich(f); f.OpenMPI = &job.OpenMPIFact{} }),
		[]string{`mpi error mpi-error h1: the program "/bin/train" needs the library of MPICH (/usr/lib/libmpich.so.12.2.2), but --mpi says openmpi: each rank would take itself for the only one`}},
	{"a static program", job.MPIOpenMPI, 1, on(func(f *job.Facts) { needs(f, job.MPIMPICH, "") }),
		[]string{`mpi error mpi-error h1: the program "/bin/train" needs the library of MPICH (linked into it), but --mpi says openmpi: each rank would take itself for the only one`}},
	{"one host has the other family, where one was asked for", job.MPIMPICH, 2, perHost(mpich, openMPI),
		[]string{`mpi error mpi-error h2: the program "/bin/train" needs the library of Open MPI (/usr/lib/libmpi.so.40.30.4), but --mpi says mpich: each rank would take itself for the only one`}},

	{"no mpirun on one host", job.MPIAuto, 2, perHost(openMPI, func(f *job.Facts) { openMPI(f); f.OpenMPI = &job.OpenMPIFact{} }),
		[]string{`mpi error missing-library h2: the program "/bin/train" cannot be started: Open MPI's mpirun is not there`}},
	{"no mpirun where Python is to have one", job.MPIOpenMPI, 1, on(func(f *job.Facts) { f.OpenMPI = &job.OpenMPIFact{} }),
		[]string{`mpi error missing-library h1: the program "/bin/train" cannot be started: Open MPI's mpirun is not there`}},
	{"no daemon", job.MPIAuto, 2, on(func(f *job.Facts) { openMPI(f); f.OpenMPI.Daemon = "" }),
		[]string{`mpi error missing-library : the program "/bin/train" cannot be started: Open MPI's daemon (orted or prted) is not beside its mpirun "/usr/bin/mpirun" (on all 2 hosts)`}},

	{"two families", job.MPIAuto, 4, perHost(func(*job.Facts) {}, mpich, openMPI, mpich),
		[]string{`mpi error mpi-error : the program "/bin/train" needs different MPI libraries on h2, h3 and h4: Open MPI's on h3, MPICH's on h2 and h4`}},

	{"a library of another version", job.MPIAuto, 3, perHost(mpich, mpich, func(f *job.Facts) { needs(f, job.MPIMPICH, "/opt/lib/libmpi.so.12.3.0") }),
		[]string{`mpi-same error mpi-error : the MPI library is not of the same version on h1, h2 and h3: 12.2.2 on h1 and h2, 12.3.0 on h3`}},
	{"an mpirun of another version", job.MPIOpenMPI, 2, perHost(openMPI, func(f *job.Facts) { openMPI(f); f.OpenMPI.Version = "5.0.3" }),
		[]string{`mpi-same error mpi-error : Open MPI's mpirun is not of the same version on h1 and h2: 4.1.4 on h1, 5.0.3 on h2`}},
	{"the same version elsewhere", job.MPIAuto, 2, perHost(mpich, func(f *job.Facts) { needs(f, job.MPIMPICH, "/opt/lib/libmpich.so.12.2.2") }), nil},
	{"a version that says less", job.MPIAuto, 2, perHost(mpich, func(f *job.Facts) { needs(f, job.MPIMPICH, "libmpich.so.12") }), nil},
	{"a version that only looks like it", job.MPIAuto, 2,
		perHost(func(f *job.Facts) { needs(f, job.MPIMPICH, "libmpich.so.1") }, func(f *job.Facts) { needs(f, job.MPIMPICH, "libmpich.so.12") }),
		[]string{`mpi-same error mpi-error : the MPI library is not of the same version on h1 and h2: 1 on h1, 12 on h2`}},
	{"no version is known", job.MPIAuto, 2, perHost(openMPI, func(f *job.Facts) {
		needs(f, job.MPIOpenMPI, "")
		f.OpenMPI.Version = ""
	}), nil},
	{"mpirun's version does not matter to MPICH", job.MPIAuto, 2, perHost(
		func(f *job.Facts) { mpich(f); f.OpenMPI = &job.OpenMPIFact{Version: "4.1.4"} },
		func(f *job.Facts) { mpich(f); f.OpenMPI = &job.OpenMPIFact{Version: "5.0.3"} }), nil},
	{"a missing program silences it", job.MPIMPICH, 2, perHost(mpich, func(f *job.Facts) {
		openMPI(f)
		f.Program.PathFact = broken("/bin/train", job.ErrorMissing, "x")
	}), []string{`program error launch-error h2: the program "/bin/train" does not exist or is not on PATH`}},
}

func TestStaticMPI(t *testing.T) {
	said := make(map[string]bool)
	for _, tt := range mpiCases {
		t.Run(tt.name, func(t *testing.T) {
			facts := soundFacts(tt.hosts)
			tt.change(facts)
			spec := testSpec()
			spec.MPI = tt.asked
			var have []string
			for _, f := range Static(spec, facts) {
				have = append(have, line(f))
				said[signatureOf(f)] = true
				checkFinding(t, f)
			}
			if !slices.Equal(have, tt.want) {
				t.Errorf("have:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	for _, c := range []Check{mpiCheck, mpiSameCheck} {
		for _, p := range c.Problems {
			if !said[p.Signature] {
				t.Errorf("no case shows %s", p.Signature)
			}
		}
	}
}

func TestMPIVersionEvidence(t *testing.T) {
	facts := soundFacts(3)
	perHost(mpich, mpich, func(f *job.Facts) { needs(f, job.MPIMPICH, "/opt/libmpich.so.12.3.0") })(facts)
	have := Static(testSpec(), facts)[0].Cause.Evidence
	want := []job.Line{
		{Source: job.SourceAgent, Host: "h1", Rank: -1, File: "/usr/lib/libmpich.so.12.2.2", Text: "version 12.2.2"},
		{Source: job.SourceAgent, Host: "h3", Rank: -1, File: "/opt/libmpich.so.12.3.0", Text: "version 12.3.0"},
	}
	if !slices.Equal(have, want) {
		t.Errorf("evidence %+v, want %+v", have, want)
	}
}

func TestMPIIsAsked(t *testing.T) {
	spec := testSpec()
	spec.MPI = job.MPIOpenMPI
	if have := Questions(spec).MPI; have != job.MPIOpenMPI {
		t.Errorf("the hosts are asked for %q", have)
	}
}
