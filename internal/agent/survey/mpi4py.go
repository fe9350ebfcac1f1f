package survey

import (
	"context"
	"os"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/pattern"
)

// importsMPI4py matches a line that imports mpi4py, or a line of a text that looks like it.
var importsMPI4py = pattern.New(`(?m)(^|[;:])[ \t]*(from[ \t]+mpi4py\b|import[ \t]+([\w., \t]*,[ \t]*)?mpi4py\b)`)

// findMPI prints the path of mpi4py's extension module. It imports nothing of mpi4py.
const findMPI = `import importlib.util, glob, os
spec = importlib.util.find_spec("mpi4py")
for dir in spec.submodule_search_locations if spec else []:
    for path in sorted(glob.glob(os.path.join(dir, "MPI*.so"))):
        print(path)
`

// MPI4py returns the path of the extension module of mpi4py. That module is linked with the MPI library. MPI4py
// returns "" if argv does not run a Python script that imports mpi4py.
func (v Surveyor) MPI4py(ctx context.Context, argv []string, workdir, interpreter string) string {
	if !IsPython(argv[0], interpreter) {
		return ""
	}
	script, code := pythonProgram(argv)
	source := []byte(code)
	if script != "" {
		info, err := os.Stat(pathfact.In(workdir, script))
		if err != nil || !info.Mode().IsRegular() {
			return ""
		}
		if source, err = os.ReadFile(pathfact.In(workdir, script)); err != nil {
			return ""
		}
	}
	if !importsMPI4py().Match(source) {
		return ""
	}
	out, err := v.Children.RunHelper(ctx, interpreter, []string{interpreter, "-c", findMPI}, "/", v.Env, nil, false)
	if err != nil {
		return "" // the ranks will fail for the same reason
	}
	path, _, _ := strings.Cut(string(out), "\n")
	return path
}
