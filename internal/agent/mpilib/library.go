// Package mpilib finds the MPI library that a program needs, and the MPI family to which the library belongs.
// It does not run the program.
package mpilib

import (
	"bufio"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

// Limits of the search for an MPI library. The search finds the library early, even in a program with hundreds of
// libraries.
const (
	mostLibraries = 256      // the libraries that are opened
	mostStatic    = 64 << 20 // the bytes of a static program that are read
	mostConfig    = 64       // the files of the dynamic loader's configuration that are read
)

// Part is the role of a library in an MPI installation.
type Part int

const (
	NotMPI    Part = iota // no part of MPI
	Runtime               // another library, which the MPI library of one family needs
	Binding               // a language's binding on top of the MPI library
	Ambiguous             // the MPI library, with a name that either family may have
	Library               // the MPI library
)

// Classify returns the MPI family of a library, and the library's part in it. name is the file name or soname
// of the library. For an ambiguous name, it returns the family that uses the name most often. There are two
// ambiguous names: libmpi.so.12 belongs to MPICH, Intel MPI and MVAPICH, which have a common ABI, but also to
// Open MPI 1.10; libmpi_abi belongs to the ABI that the MPI standard defines.
func Classify(name string) (job.MPI, Part) {
	stem, version, _ := strings.Cut(name, ".so")
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "."), ".")
	switch stem {
	case "libopen-pal", "libopen-rte", "libopen_mpi", "liboshmem":
		return job.MPIOpenMPI, Runtime
	case "libmpich":
		return job.MPIMPICH, Library
	case "libmpichcxx", "libmpichfort", "libmpichf90", "libmpicxx", "libmpifort":
		return job.MPIMPICH, Binding
	case "libmpi", "libmpi_mt":
		switch major {
		case "", "12":
			return job.MPIMPICH, Ambiguous
		case "4": // the libmpi of Intel MPI 4
			return job.MPIMPICH, Library
		}
		return job.MPIOpenMPI, Library // the version is 0, 1, 20 or 40 so far
	case "libmpi_abi":
		return job.MPIMPICH, Ambiguous
	case "libmpi_cxx", "libmpi_f77", "libmpi_f90", "libmpi_mpifh", "libmpi_usempi",
		"libmpi_usempi_ignore_tkr", "libmpi_usempif08", "libmpi_java":
		return job.MPIOpenMPI, Binding
	}
	// Cray's libraries are named after their compiler, as in libmpi_gnu_91.so.12.
	if strings.HasPrefix(stem, "libmpi_") && major == "12" {
		return job.MPIMPICH, Library
	}
	return "", NotMPI
}

// Of returns the MPI family that an ELF program needs, and the path of the MPI library. It does not resolve
// symbolic links in that path. If the library is not found, Of returns the name of the library instead of the
// path. If the program needs no MPI, Of returns empty strings. For a script, it looks at the interpreter. It
// runs no program: it searches for libraries as ld.so(8) does, but in the directories of the loader's
// configuration instead of the loader's cache.
func Of(path string, env []string) (mpi job.MPI, library string) {
	if interpreter := ScriptInterpreter(path, env); interpreter != "" {
		path = interpreter
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the kernel gives the loader this path, for $ORIGIN
	}
	program, err := openObject(path)
	if err != nil {
		return "", ""
	}
	if program.static {
		return staticMPI(path), ""
	}
	s := librarySearch{program: program, seen: map[string]bool{}}
	s.environment = program.directories(strings.ReplaceAll(environ.Lookup(env, "LD_LIBRARY_PATH"), ";", ":"))
	return s.run()
}

// librarySearch goes through the libraries of a program, level by level.
type librarySearch struct {
	program     *object
	environment []string // the directories of LD_LIBRARY_PATH
	system      []string // the directories of the loader's configuration; read when they are first needed
	seen        map[string]bool
}

func (s *librarySearch) run() (mpi job.MPI, library string) {
	var guess, guessed = job.MPI(""), "" // a binding, in case the library itself is not found
	level := []*object{s.program}
	for len(level) > 0 {
		// The libraries that this level needs are searched before the libraries of the next level.
		for _, o := range level {
			for _, name := range o.needed {
				switch family, p := Classify(filepath.Base(name)); p {
				case Library:
					if found := s.find(o, name); found != nil {
						return family, found.path
					}
					return family, name
				case Ambiguous:
					found := s.find(o, name)
					if found == nil {
						return family, name
					}
					if slices.ContainsFunc(found.needed, openMPIRuntime) {
						family = job.MPIOpenMPI
					}
					return family, found.path
				case Binding: // Open MPI's own commands use only the runtime
					if guess == "" {
						guess, guessed = family, name
						if found := s.find(o, name); found != nil {
							guessed = found.path
						}
					}
				}
			}
		}
		var next []*object
		for _, o := range level {
			for _, name := range o.needed {
				if s.seen[name] || systemLibrary(name) || len(s.seen) >= mostLibraries {
					continue
				}
				s.seen[name] = true
				if found := s.find(o, name); found != nil {
					found.parent = o
					next = append(next, found)
				}
			}
		}
		level = next
	}
	return guess, guessed
}

func openMPIRuntime(name string) bool {
	family, p := Classify(filepath.Base(name))
	return p == Runtime && family == job.MPIOpenMPI
}

// systemLibrary reports whether a library belongs to the compiler or the C library, and so
// needs no MPI.
func systemLibrary(name string) bool {
	stem, _, _ := strings.Cut(filepath.Base(name), ".so")
	switch stem {
	case "libc", "libm", "libdl", "libpthread", "librt", "libutil", "libresolv", "libmvec", "libgcc_s", "libstdc++",
		"libgfortran", "libquadmath", "libgomp", "libatomic", "libz", "ld-linux-x86-64", "ld-linux-aarch64", "ld-linux":
		return true
	}
	return strings.HasPrefix(stem, "libc.musl-")
}

// find opens the library that the loader would load for o under that name. It returns nil if there is none.
func (s *librarySearch) find(o *object, name string) *object {
	try := func(path string) *object {
		found, err := openObject(path)
		if err != nil || found.class != s.program.class || found.machine != s.program.machine {
			return nil // the loader does not search further, either
		}
		return found
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return nil // the directory is relative to the working directory, which the program may change
		}
		return try(name)
	}
	var dirs []string
	if o.runpath == nil {
		for at := o; at != nil; at = at.parent {
			if at.runpath == nil {
				dirs = append(dirs, at.rpath...)
			}
		}
	}
	for _, more := range [][]string{dirs, s.environment, o.runpath} {
		for _, dir := range more {
			if found := try(filepath.Join(dir, name)); found != nil {
				return found
			}
		}
	}
	if s.system == nil {
		s.system = append(loaderConfig("/etc/ld.so.conf"), "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	}
	for _, dir := range s.system {
		if found := try(filepath.Join(dir, name)); found != nil {
			return found
		}
	}
	return nil
}

// object is a program or library, with the data of its dynamic section.
type object struct {
	path           string
	class          elf.Class
	machine        elf.Machine
	static         bool // it has no loader, and no dynamic section that names libraries
	needed         []string
	rpath, runpath []string
	parent         *object // the object that needs this one
}

func openObject(path string) (*object, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	o := &object{path: path, class: file.Class, machine: file.Machine}
	// In a damaged file, the loader finds nothing, either.
	o.needed, _ = file.DynString(elf.DT_NEEDED)
	if list, _ := file.DynString(elf.DT_RPATH); len(list) > 0 {
		o.rpath = o.directories(list[0])
	}
	if list, _ := file.DynString(elf.DT_RUNPATH); len(list) > 0 {
		o.runpath = o.directories(list[0])
	}
	o.static = len(o.needed) == 0 && !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	return o, nil
}

// directories splits a search path and replaces $ORIGIN by the object's directory. It drops
// directories that are relative or have other tokens.
func (o *object) directories(list string) []string {
	dirs := []string{}
	origin := filepath.Dir(o.path)
	for dir := range strings.SplitSeq(list, ":") {
		dir = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(dir)
		if filepath.IsAbs(dir) && !strings.Contains(dir, "$") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// loaderConfig returns the directories in a file of the dynamic loader's configuration, and in
// the files that it includes; see ldconfig(8).
func loaderConfig(path string) []string {
	var dirs []string
	files := []string{path}
	for i := 0; i < len(files) && i < mostConfig; i++ {
		data, err := os.ReadFile(files[i])
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			line, _, _ = strings.Cut(line, "#")
			fields := strings.Fields(line)
			if len(fields) > 1 && fields[0] == "include" {
				for _, pattern := range fields[1:] {
					if !filepath.IsAbs(pattern) {
						pattern = filepath.Join(filepath.Dir(files[i]), pattern)
					}
					more, _ := filepath.Glob(pattern) // sorted; nil if the pattern is malformed
					files = append(files, more...)
				}
			} else if len(fields) == 1 && filepath.IsAbs(fields[0]) {
				dirs = append(dirs, fields[0])
			}
		}
	}
	return dirs
}

// ScriptInterpreter returns the program that the #! line of a script names. If that program is env(1),
// ScriptInterpreter returns the program that env would run. It returns "" if the file is not a script.
func ScriptInterpreter(path string, env []string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head, _ := bufio.NewReader(file).Peek(256) // the kernel's BINPRM_BUF_SIZE
	if !bytes.HasPrefix(head, []byte("#!")) {
		return ""
	}
	line, _, _ := strings.Cut(string(head[2:]), "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return ""
	}
	if filepath.Base(fields[0]) == "env" && len(fields) > 1 && !strings.HasPrefix(fields[1], "-") {
		if program, err := process.LookPath(fields[1], "/", env); err == nil {
			return program
		}
	}
	return fields[0]
}

// staticMarks has strings that MPI libraries contain.
var staticMarks = []struct {
	text []byte
	mpi  job.MPI
}{{[]byte("MPICH Version:"), job.MPIMPICH}, {[]byte("Intel(R) MPI Library"), job.MPIMPICH}, {[]byte("Open MPI v"), job.MPIOpenMPI}}

// staticMPI returns the MPI family of the library that a static program contains.
func staticMPI(path string) job.MPI {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	left := int64(mostStatic)
	for _, name := range []string{".rodata", ".data"} {
		if section := file.Section(name); section != nil && section.Type == elf.SHT_PROGBITS {
			if mpi := markedMPI(io.LimitReader(section.Open(), left)); mpi != "" {
				return mpi
			}
			left -= min(left, int64(section.FileSize))
		}
	}
	return ""
}

func markedMPI(r io.Reader) job.MPI {
	const longest = 32 // no mark is longer, in bytes
	buffer := make([]byte, 256<<10)
	kept := 0
	for {
		n, err := io.ReadFull(r, buffer[kept:])
		data := buffer[:kept+n]
		for _, mark := range staticMarks {
			if bytes.Contains(data, mark.text) {
				return mark.mpi
			}
		}
		if err != nil {
			return ""
		}
		// A mark may begin in this piece and end in the next one.
		kept = copy(buffer, data[len(data)-longest:])
	}
}

// Versioned follows symbolic links from a library to the file whose name has the version. It
// follows only links within the directory of the library.
func Versioned(library string) string {
	if !filepath.IsAbs(library) {
		return library
	}
	for range 8 {
		target, err := os.Readlink(library)
		if err != nil || strings.Contains(target, "/") {
			break
		}
		library = filepath.Join(filepath.Dir(library), target)
	}
	return library
}
