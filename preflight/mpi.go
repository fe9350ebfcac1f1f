package preflight

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

var mpiCheck = Check{
	Code:      "mpi",
	Asks:      "Can the ranks find each other, by the MPI library that the program needs?",
	DependsOn: []string{"program"},
	Problems: []Problem{
		{"mpi-flavour", job.SeverityError, job.MPIError,
			"the program {path} needs the library of {family} ({library}), but --mpi says {asked}: each rank would take itself for the only one",
			"use --mpi {flavour}, or leave --mpi out"},
		{"mpi-launcher-missing", job.SeverityError, job.MissingLibrary,
			"the program {path} cannot be started: Open MPI's {commands}",
			"install Open MPI's commands (Debian: openmpi-bin), or put the directory of its mpirun on PATH, as with -e PATH=DIRS"},
		{"mpi-mixed", job.SeverityError, job.MPIError,
			"the program {path} needs different MPI libraries on {hosts}: Open MPI's on {openmpi}, MPICH's on {mpich}",
			"build the program with the same MPI for every host"},
	},
	Judge: func(s job.Spec, facts []job.Facts) []Hit {
		if s.MPI == job.MPINone {
			return nil
		}
		return append(each(flavour)(s, facts), mixed(s, facts)...)
	},
}

func flavour(s job.Spec, f job.Facts) []Hit {
	p := f.Program
	found := p.MPI
	named := s.MPI.Family() != "" // the user has named the family
	if named && found != "" && found != s.MPI {
		library := p.Library
		if library == "" {
			library = "linked into it"
		}
		return []Hit{{Signature: "mpi-flavour", Path: p.Path, Values: about(p.Path,
			"family", found.Family(), "library", library, "asked", string(s.MPI), "flavour", string(found))}}
	}
	if s.MPI != job.MPIOpenMPI && found != job.MPIOpenMPI || f.OpenMPI == nil {
		return nil
	}
	var commands string
	switch {
	case f.OpenMPI.Mpirun == "":
		commands = "mpirun is not there"
	case f.OpenMPI.Daemon == "":
		commands = "daemon (orted or prted) is not beside its mpirun " + quote(f.OpenMPI.Mpirun)
	default:
		return nil
	}
	return []Hit{{Signature: "mpi-launcher-missing", Path: p.Path, Values: about(p.Path, "commands", commands)}}
}

// mixed returns the Hit for hosts whose programs need another MPI family than those of other hosts.
// If the user has named the family, flavour reports these hosts.
func mixed(s job.Spec, facts []job.Facts) []Hit {
	hosts := make(map[job.MPI][]string)
	var all []string
	for _, f := range facts {
		if m := f.Program.MPI; m != "" {
			hosts[m] = append(hosts[m], f.Host)
			all = append(all, f.Host)
		}
	}
	if s.MPI.Family() != "" || len(hosts) < 2 {
		return nil
	}
	path := facts[slices.IndexFunc(facts, func(f job.Facts) bool { return f.Program.MPI != "" })].Program.Path
	return []Hit{{Signature: "mpi-mixed", Hosts: all, Path: path, Values: about(path,
		"openmpi", names(hosts[job.MPIOpenMPI]), "mpich", names(hosts[job.MPIMPICH]))}}
}

var mpiSameCheck = Check{
	Code:      "mpi-same",
	Asks:      "Do all hosts have the same version of the MPI library, and of Open MPI's mpirun?",
	DependsOn: []string{"mpi"},
	Problems: []Problem{
		{"mpi-version-differs", job.SeverityError, job.MPIError,
			"{what} is not of the same version on {hosts}: {versions}",
			"install the same version everywhere, or keep MPI on a shared file system; if they differ on purpose, use --preflight off"},
	},
	Judge: func(s job.Spec, facts []job.Facts) []Hit {
		if s.MPI == job.MPINone {
			return nil
		}
		library := versions("the MPI library", facts, func(f job.Facts) (string, string) {
			return f.Program.Library, libraryVersion(f.Program.Library)
		})
		mpirun := versions("Open MPI's mpirun", facts, func(f job.Facts) (string, string) {
			if f.OpenMPI == nil || s.MPI != job.MPIOpenMPI && f.Program.MPI != job.MPIOpenMPI {
				return "", ""
			}
			return f.OpenMPI.Mpirun, f.OpenMPI.Version
		})
		return append(library, mpirun...)
	},
}

// libraryVersion returns the version in the file name of a library, as in "40.30.4". It returns "" if there is
// none.
func libraryVersion(path string) string {
	_, version, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ".so.")
	return version
}

// versions returns the Hit for hosts whose versions of something differ. It ignores hosts whose
// version is not known. A shorter version ("40") counts as the same as a longer one that begins
// with it ("40.30.4").
func versions(what string, facts []job.Facts, of func(job.Facts) (path, version string)) []Hit {
	hosts := make(map[string][]string) // of a version
	var all []string
	var first string // path
	var proof []job.Line
	for _, f := range facts {
		path, version := of(f)
		if version == "" {
			continue
		}
		if first == "" {
			first = path
		}
		if hosts[version] == nil {
			proof = append(proof, job.Line{Source: job.SourceAgent, Host: f.Host, Rank: -1, File: path, Text: "version " + version})
		}
		hosts[version] = append(hosts[version], f.Host)
		all = append(all, f.Host)
	}
	known := slices.Sorted(maps.Keys(hosts))
	differ := slices.ContainsFunc(known, func(a string) bool {
		return slices.ContainsFunc(known, func(b string) bool {
			return !strings.HasPrefix(a+".", b+".") && !strings.HasPrefix(b+".", a+".")
		})
	})
	if !differ {
		return nil
	}
	list := make([]string, len(known))
	for i, version := range known {
		list[i] = version + " on " + names(hosts[version])
	}
	return []Hit{{Signature: "mpi-version-differs", Hosts: all, Path: first, Evidence: proof,
		Values: map[string]string{"what": what, "versions": strings.Join(list, ", ")}}}
}
