package survey

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
)

// cuda returns what a program needs of the NVIDIA driver. list has the versions of the program's libraries and
// packages. cuda returns nil if no driver is loaded, or if nothing of CUDA is found. root has the files of this host or
// container.
func cuda(root fs.FS, list []job.VersionFact, env []string) *job.CUDAFact {
	driver := driverOf(root)
	if driver == "" {
		return nil
	}
	fact := &job.CUDAFact{Driver: driver}
	if fact.Runtime, fact.From = runtimeIn(list); fact.Runtime != "" {
		fact.Used = true
	} else if found, version := newest(root, libraryDirs(env), cudart()); found != "" {
		fact.Runtime, fact.From = majorMinor(version), found
	} else if version := environ.Lookup(env, "CUDA_VERSION"); version != "" { // NVIDIA's images have this variable
		fact.Runtime, fact.From = majorMinor(version), "CUDA_VERSION"
	}
	if fact.Runtime == "" {
		return nil
	}
	if found, version := newest(root, compatDirs, libcuda()); found != "" {
		fact.Compat, fact.CompatPath = version, found
		fact.CompatFirst = slices.ContainsFunc(searchPath(env), func(dir string) bool { return sameDir(root, dir, path.Dir(found)) })
	}
	return fact
}

// driverOf returns the version of the NVIDIA driver that is loaded. It returns "" if none is loaded.
func driverOf(root fs.FS) string {
	data, err := fs.ReadFile(root, strings.TrimPrefix(driverVersion, "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// runtimeIn returns the version of the CUDA runtime that a program loads or that its Python has. from says where that
// version was found.
func runtimeIn(list []job.VersionFact) (version, from string) {
	for _, f := range list {
		first, _, _ := strings.Cut(f.Version, " ") // the rest of the version is the build
		if f.Kind == job.VersionLibrary && strings.HasPrefix(f.Name, "libcudart.so.") && strings.Count(first, ".") > 1 ||
			f.Kind == job.VersionPython && strings.HasPrefix(f.Name, "nvidia-cuda-runtime") {
			return majorMinor(first), f.Name
		}
	}
	for _, f := range list {
		_, local, ok := strings.Cut(f.Version, "+cu") // as in 2.3.0+cu121 of torch
		if number, err := strconv.Atoi(local); f.Kind == job.VersionPython && ok && err == nil && number >= 90 {
			return strconv.Itoa(number/10) + "." + strconv.Itoa(number%10), f.Name + " " + f.Version
		}
	}
	return "", ""
}

// majorMinor returns the first two numbers of a version.
func majorMinor(version string) string {
	numbers := strings.Split(version, ".")
	return strings.Join(numbers[:min(2, len(numbers))], ".")
}

// The names of the files of libraries, which contain the versions. Links to these files have shorter names.
var (
	cudart  = pattern.New(`^libcudart\.so\.(\d+\.\d+\.\d+)$`)
	libcuda = pattern.New(`^libcuda\.so\.(\d+\.\d+(?:\.\d+)?)$`)
	libnccl = pattern.New(`^libnccl\.so\.(\d+\.\d+\.\d+)$`)
)

// usualDirs has the directories in which packages and NVIDIA's images have libraries. compatDirs has those in which
// they have the libraries of a newer driver.
var (
	usualDirs  = []string{"usr/local/cuda/lib64", "usr/local/cuda-*/lib64", "usr/local/cuda*/targets/*/lib", "usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "opt/conda/lib"}
	compatDirs = []string{"usr/local/cuda/compat", "usr/local/cuda-*/compat", "usr/local/cuda/compat/lib.real"}
)

// searchPath returns the directories of LD_LIBRARY_PATH, relative to the root directory.
func searchPath(env []string) (dirs []string) {
	for dir := range strings.SplitSeq(environ.Lookup(env, "LD_LIBRARY_PATH"), ":") {
		if path.IsAbs(dir) {
			dirs = append(dirs, strings.TrimPrefix(path.Clean(dir), "/"))
		}
	}
	return dirs
}

// libraryDirs returns patterns of directories with libraries, in the order in which they are searched.
func libraryDirs(env []string) []string { return slices.Concat(searchPath(env), usualDirs) }

// newest returns the file with the highest version in the first directory that has such a file, and that version.
func newest(root fs.FS, dirs []string, name *regexp.Regexp) (file, version string) {
	for _, pattern := range dirs {
		matches, _ := fs.Glob(root, pattern)
		for _, dir := range matches {
			entries, _ := fs.ReadDir(root, dir)
			for _, entry := range entries {
				if match := name.FindStringSubmatch(entry.Name()); match != nil && job.CompareVersions(match[1], version) > 0 {
					file, version = "/"+path.Join(dir, entry.Name()), match[1]
				}
			}
		}
		if file != "" {
			break
		}
	}
	return file, version
}

// sameDir reports whether two paths lead to the same directory.
func sameDir(root fs.FS, a, b string) bool {
	one, err := fs.Stat(root, cmp.Or(a, "."))
	two, err2 := fs.Stat(root, strings.TrimPrefix(b, "/"))
	if err != nil || err2 != nil {
		return false
	}
	return a == strings.TrimPrefix(b, "/") || os.SameFile(one, two)
}

// withNCCL adds the NCCL library in a directory to a list, if the list has no NCCL.
func withNCCL(root fs.FS, list []job.VersionFact, env []string) []job.VersionFact {
	if slices.ContainsFunc(list, func(f job.VersionFact) bool { return strings.Contains(f.Name, "nccl") }) {
		return list
	}
	if file, version := newest(root, libraryDirs(env), libnccl()); file != "" {
		list = append(list, job.VersionFact{Kind: job.VersionLibrary, Name: path.Base(file)[:len("libnccl.so.2")], Version: version})
	}
	return list
}
