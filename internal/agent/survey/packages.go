package survey

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/agent/mpilib"
	"github.com/gangrun/gangrun/internal/job"
)

// packagesCode prints versions as JSON: those of Python, of the packages that the program on its standard input imports
// at any level, and of the packages that bring libraries for GPUs. It imports none of the packages.
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

// packages asks the Python interpreter that runs the program for the versions of its packages. It returns nil if there
// is no interpreter.
func (v Surveyor) packages(ctx context.Context, ask job.Survey, facts job.Facts) (list []job.VersionFact) {
	python, path := facts.Program.Path, ""
	var source []byte
	if facts.Script == nil {
		if interpreter := mpilib.ScriptInterpreter(python, v.Env); interpreter != "" {
			python, path = interpreter, python
		}
		if !pythonName.Match(filepath.Base(python)) {
			return nil
		}
	} else if _, code := pythonProgram(ask.Command); code != "" {
		source = []byte(code)
	} else if facts.Script.SHA256 != "" {
		path = facts.Script.Path
	}
	if path != "" {
		source, _ = os.ReadFile(path) // script has just read it
	}
	out, err := v.Children.RunHelper(ctx, python, []string{python, "-c", packagesCode}, "/", v.Env, source, false)
	if err != nil {
		return nil // the trial will fail for the same reason
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
