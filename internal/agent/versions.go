package agent

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

// driverVersion holds the version of the NVIDIA driver that is loaded. Reading it
// asks nothing of the driver, which may hang.
const driverVersion = "/sys/module/nvidia/version"

// versions returns the version of everything that the hosts of a gang had better
// have in common: what is not there is left out.
func (v surveyor) versions(ctx context.Context, ask job.Survey, facts job.Facts) (list []job.VersionFact) {
	if text, err := os.ReadFile(driverVersion); err == nil {
		list = append(list, job.VersionFact{Kind: job.VersionDriver, Name: "the NVIDIA driver", Version: strings.TrimSpace(string(text))})
	}
	if facts.Program.Kind != job.ErrorNone {
		return list
	}
	list = append(list, v.libraries(ctx, facts.Program.Path)...)
	list = append(list, v.packages(ctx, ask, facts)...)
	if facts.Script != nil && facts.Script.MPI4py {
		if module := v.mpi4py(ctx, ask.Command, ask.Workdir, facts.Program.Path); module != "" {
			if _, library := mpilib.Of(module, v.env); library != "" {
				list = append(list, job.VersionFact{Kind: job.VersionMPI, Name: "the MPI library of mpi4py", Version: buildOf(library)})
			}
		}
	}
	return list
}

// libraries asks the program's dynamic loader which shared libraries it would load.
func (v surveyor) libraries(ctx context.Context, program string) (list []job.VersionFact) {
	if interpreter := mpilib.ScriptInterpreter(program, v.env); interpreter != "" {
		program = interpreter
	}
	loader := loaderOf(program)
	if loader == "" {
		return nil
	}
	argv, env, ok := listing(loader, program, v.env)
	if !ok {
		return nil
	}
	out, err := v.children.RunHelper(ctx, loader, argv, "/", env, nil, true)
	if err != nil {
		return nil // one is missing, which is told anyway
	}
	for line := range strings.Lines(string(out)) {
		// As in "libm.so.6 => /lib/libm.so.6 (0x00007f12a2c4d000)".
		name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
		path, _, _ = strings.Cut(path, " (0x")
		if ok && filepath.IsAbs(path) {
			list = append(list, job.VersionFact{Kind: job.VersionLibrary, Name: name, Version: buildOf(path)})
		}
	}
	return list
}

// listing is how a dynamic loader is asked for a program's libraries; ok is false
// where it is neither glibc's nor musl's. See ld.so(8): with a variable in its
// environment glibc's goes on at a missing library, and with --list it does not.
func listing(loader, program string, env []string) (argv, in []string, ok bool) {
	switch name := filepath.Base(loader); {
	case strings.HasPrefix(name, "ld-musl-"):
		return []string{loader, "--list", program}, env, true
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld64.so."):
		return []string{loader, program}, environ.Overlay(env, []string{"LD_TRACE_LOADED_OBJECTS=1"}), true
	}
	return nil, nil, false
}

// loaderOf returns the dynamic loader of a program, "" where it has none.
func loaderOf(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(segment.Open(), 4096))
			if err != nil {
				return ""
			}
			return strings.TrimRight(string(name), "\x00")
		}
	}
	return ""
}

// buildOf returns what tells a library from other builds of it: the version in its
// file's name, and the beginning of its build id, as in "2.18.5 build 9c1f03ab".
func buildOf(library string) string {
	var words []string
	if real, err := filepath.EvalSymlinks(library); err == nil {
		library = real
	}
	if _, version, ok := strings.Cut(filepath.Base(library), ".so."); ok {
		words = append(words, version)
	}
	if id := buildID(library); id != "" {
		words = append(words, "build "+id[:min(len(id), 8)])
	}
	if len(words) == 0 {
		if info, err := os.Stat(library); err == nil {
			words = append(words, strconv.FormatInt(info.Size(), 10)+" bytes")
		}
	}
	return strings.Join(words, " ")
}

// buildID returns the build id that the linker gave to a file, in hexadecimal; ""
// where there is none.
func buildID(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".note.gnu.build-id")
	if section == nil || section.Size > 4096 {
		return ""
	}
	note, err := section.Data()
	if err != nil {
		return ""
	}
	return noteID(note, file.ByteOrder)
}

// noteID reads a note of the kind NT_GNU_BUILD_ID: the sizes of name and content, a
// kind, the name "GNU" and the content; see elf(5).
func noteID(note []byte, order binary.ByteOrder) string {
	const head = 12 + len("GNU\x00")
	if len(note) < head || order.Uint32(note) != 4 || order.Uint32(note[8:]) != 3 || string(note[12:head]) != "GNU\x00" {
		return ""
	}
	size := order.Uint32(note[4:])
	if uint64(size) > uint64(len(note)-head) {
		return ""
	}
	return hex.EncodeToString(note[head : head+int(size)])
}

// packagesCode prints, as JSON, the version of Python and of the packages that the
// program on its standard input imports at any level, and of those that bring
// libraries for GPUs; it imports none of them.
const packagesCode = `import sys, json, ast
from importlib import metadata
names = {"torch", "numpy", "mpi4py"}
try:
    for node in ast.walk(ast.parse(sys.stdin.buffer.read())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
except (SyntaxError, ValueError):
    pass
for library in ("nccl", "cuda-runtime", "cudnn", "cublas"):
    names.update("nvidia-%s-cu%d" % (library, n) for n in (11, 12, 13))
found = {"Python": sys.version.split()[0]}
for name in names:
    try:
        found[name] = str(metadata.version(name))
    except Exception:
        pass
print(json.dumps(found))
`

// packages asks the Python that runs the program, if one does, for its packages.
func (v surveyor) packages(ctx context.Context, ask job.Survey, facts job.Facts) (list []job.VersionFact) {
	python, path := facts.Program.Path, ""
	var source []byte
	if facts.Script == nil {
		if interpreter := mpilib.ScriptInterpreter(python, v.env); interpreter != "" {
			python, path = interpreter, python
		}
		if !pythonName.MatchString(filepath.Base(python)) {
			return nil
		}
	} else if _, code := pythonProgram(ask.Command); code != "" {
		source = []byte(code)
	} else if facts.Script.SHA256 != "" {
		path = facts.Script.Path
	}
	if path != "" {
		source, _ = os.ReadFile(path) // it has just been read
	}
	out, err := v.children.RunHelper(ctx, python, []string{python, "-c", packagesCode}, "/", v.env, source, false)
	if err != nil {
		return nil // the trial will tell
	}
	var found map[string]string
	if json.Unmarshal(out, &found) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, job.VersionFact{Kind: job.VersionPython, Name: name, Version: found[name]})
	}
	return list
}
