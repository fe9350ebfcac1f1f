package agent

import (
	"context"
	"os"
	"regexp"
	"strings"
)

// importsMPI matches a line of Python that imports mpi4py.
var importsMPI = regexp.MustCompile(`(?m)^\s*(?:import|from)\s+mpi4py\b|;\s*(?:import|from)\s+mpi4py\b`)

// findMPI prints the path of mpi4py's extension module, importing none of it.
const findMPI = `import importlib.util, glob, os
spec = importlib.util.find_spec("mpi4py")
for dir in spec.submodule_search_locations if spec else []:
    for path in sorted(glob.glob(os.path.join(dir, "MPI*.so"))):
        print(path)
`

// mpi4py returns the path of the extension module that links the MPI library,
// where argv runs a Python script that imports mpi4py; else "".
func (v surveyor) mpi4py(ctx context.Context, argv []string, workdir, interpreter string) string {
	if !isPython(argv[0], interpreter) {
		return ""
	}
	script, code := pythonProgram(argv)
	source := []byte(code)
	if script != "" {
		info, err := os.Stat(resolve(workdir, script))
		if err != nil || !info.Mode().IsRegular() {
			return ""
		}
		if source, err = os.ReadFile(resolve(workdir, script)); err != nil {
			return ""
		}
	}
	if !importsMPI.Match(source) {
		return ""
	}
	out, err := v.children.RunHelper(ctx, interpreter, []string{interpreter, "-c", findMPI}, "/", v.env, nil, false)
	if err != nil {
		return "" // the ranks will tell
	}
	path, _, _ := strings.Cut(string(out), "\n")
	return path
}
