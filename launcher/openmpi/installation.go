// Package openmpi writes and parses the command lines of Open MPI's mpirun and its daemons, and
// reads their output and the messages of PMIx. It starts no process.
package openmpi

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Installation is an installation of Open MPI on a host.
type Installation struct {
	Mpirun  string // path of its mpirun
	Daemon  string // path of its orted or prted; "" if there is none beside mpirun
	Version string // such as "4.1", from the names of the libraries; "" if these have none
	Major   int    // 5 for Open MPI 5 (PRRTE), 4 for earlier versions
}

// launchers has the names of mpirun. "mpirun" is not the first of them, because it may belong to another MPI.
var launchers = []string{"mpirun.openmpi", "orterun", "mpirun", "mpiexec.openmpi"}

// Find returns the installation of Open MPI with which to start a program. The second result is false if there
// is none. library is the path of the libmpi.so.40 that the program needs; "" if unknown. env is the
// environment of the program, as NAME=VALUE. If env has several values for a variable, the last one counts.
// Find prefers the installation to which library belongs, then the installation at OPAL_PREFIX in env, and then
// the first installation in the PATH of env. It runs no program.
func Find(library string, env []string) (Installation, bool) {
	for _, dir := range directories(library, env) {
		for _, name := range launchers {
			if found, ok := look(dir, name, library); ok {
				return found, true
			}
		}
	}
	return Installation{}, false
}

// directories returns the directories in which mpirun may be, the most likely one first.
func directories(library string, env []string) []string {
	var dirs []string
	add := func(dir string) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, filepath.Clean(dir)) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	if library != "" {
		for _, path := range []string{library, resolved(library)} {
			for _, up := range []string{"..", "../..", "../../.."} {
				add(filepath.Join(filepath.Dir(path), up, "bin"))
			}
		}
	}
	if prefix := value(env, "OPAL_PREFIX"); prefix != "" {
		add(filepath.Join(prefix, "bin"))
	}
	for _, dir := range filepath.SplitList(value(env, "PATH")) {
		add(dir)
	}
	return dirs
}

// look reports whether the file name in dir is Open MPI's mpirun.
func look(dir, name, library string) (Installation, bool) {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return Installation{}, false
	}
	real := resolved(path)
	major := family(real)
	if major == 0 {
		return Installation{}, false
	}
	found := Installation{Mpirun: path, Major: major}
	daemon := "orted"
	if major >= 5 {
		daemon = "prted"
	}
	for _, beside := range []string{dir, filepath.Dir(real)} {
		if info, err := os.Stat(filepath.Join(beside, daemon)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found.Daemon = filepath.Join(beside, daemon)
			break
		}
	}
	found.Version = version(library, filepath.Dir(filepath.Dir(real)), major)
	return found, true
}

// family returns 4 or 5 for an mpirun of Open MPI, and 0 for any other file.
func family(path string) int {
	file, err := elf.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	needed, err := file.ImportedLibraries()
	if err != nil {
		return 0
	}
	for _, name := range needed {
		if strings.HasPrefix(name, "libopen-rte.so") {
			return 4
		}
		if strings.HasPrefix(name, "libprrte.so") {
			return 5
		}
		if soname, ok := strings.CutPrefix(name, "libopen-pal.so."); ok {
			soname, _, _ = strings.Cut(soname, ".")
			if number, err := strconv.Atoi(soname); err == nil && number >= 80 {
				return 5
			}
		}
	}
	switch filepath.Base(path) { // a static program names no libraries
	case "prterun":
		return 5
	case "orterun":
		return 4
	}
	// Open MPI 5's mpirun is a small program that executes the prterun in the same directory. MPICH's mpirun is hydra.
	// It has no prted, but the directory may have the prted of an Open MPI.
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "prted")); err == nil && !foreign(path, needed) {
		return 5
	}
	return 0
}

// foreign reports whether a launcher belongs to another MPI.
func foreign(path string, needed []string) bool {
	for _, name := range append([]string{resolved(path)}, needed...) {
		for _, other := range []string{"hydra", "mpich", "libslurm", "mvapich", "intel"} {
			if strings.Contains(filepath.Base(name), other) {
				return true
			}
		}
	}
	return false
}

// releases maps the MINOR of libmpi.so.40.MINOR to a version of Open MPI. Open MPI's VERSION files give the libtool
// triple C:R:A of libmpi (60:0:20 for 4.0, 70:0:30 for 4.1, 80:0:40 for 5.0). The numbers in the name of the file are
// C-A, A and R.
var (
	libmpi   = regexp.MustCompile(`^libmpi\.so\.40\.(\d+)\.\d+$`)
	releases = map[string]string{"0": "3.0", "10": "3.1", "20": "4.0", "30": "4.1", "40": "5.0"}
)

// version returns the version of Open MPI, from the name of libmpi. It returns "" if the name has no version, or a
// version of another major version.
func version(library, prefix string, major int) string {
	paths := []string{}
	if library != "" {
		paths = append(paths, resolved(library))
	}
	for _, dir := range []string{"lib", "lib64", "lib/openmpi/lib", "lib/*-linux-gnu*", "lib/*-linux-gnu*/openmpi/lib"} {
		found, _ := filepath.Glob(filepath.Join(escaped(prefix), dir, "libmpi.so.40.*"))
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if match := libmpi.FindStringSubmatch(filepath.Base(path)); match != nil {
			release := releases[match[1]]
			if release != "" && (release[0] >= '5') == (major >= 5) {
				return release
			}
		}
	}
	return ""
}

// escaped returns a path in which filepath.Glob expands nothing.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// resolved returns a path without symbolic links. If that fails, resolved returns the path itself.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// value returns the value of a variable in env. If env has the variable several times, the last entry counts.
func value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if text, ok := strings.CutPrefix(entry, name+"="); ok {
			return text
		}
	}
	return ""
}
