package survey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangrun/gangrun/internal/agent/survey/pathfact"
	"github.com/gangrun/gangrun/internal/job"
)

// compileCode compiles the code on its standard input. It prints, as JSON, the syntax error, or whether the code
// imports mpi4py at any level. It runs isolated (-I) and imports none of the user's modules.
const compileCode = `import sys, json, ast
source = sys.stdin.buffer.read()
def mpi4py(node):
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
    else:
        return False
    return any(name.split(".")[0] == "mpi4py" for name in names)
try:
    compile(source, sys.argv[1], "exec", dont_inherit=True)
    print(json.dumps({"mpi4py": b"mpi4py" in source and any(map(mpi4py, ast.walk(ast.parse(source))))}))
except SyntaxError as e:
    print(json.dumps({"syntax": type(e).__name__ + ": " + str(e.msg), "line": e.lineno or 0, "source": (e.text or "").strip()}))
except ValueError as e:
    print(json.dumps({"syntax": "ValueError: " + str(e), "line": 0, "source": ""}))
`

// script returns what Python will run, and whether that compiles. It returns nil if the program is not a Python
// interpreter, or if the interpreter runs neither a file nor the code of -c.
func (v Surveyor) script(ctx context.Context, ask job.Survey, interpreter string) *job.ScriptFact {
	if !IsPython(ask.Command[0], interpreter) {
		return nil
	}
	script, code := pythonProgram(ask.Command)
	fact := &job.ScriptFact{}
	var source []byte
	switch {
	case script != "":
		path := pathfact.In(ask.Workdir, script)
		fact.PathFact = pathfact.Readable(path)
		if fact.Dir {
			// The path may be a directory or package with a __main__.py.
			path = filepath.Join(path, "__main__.py")
			fact.PathFact = pathfact.Readable(path)
		}
		if fact.Kind != job.ErrorNone {
			return fact
		}
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			return fact // reading a FIFO would take the content away from the program
		}
		if source, err = os.ReadFile(path); err != nil {
			pathfact.Fail(&fact.PathFact, err)
			return fact
		}
		if strings.HasPrefix(string(source), "PK\x03\x04") {
			return fact // the file is a zip application
		}
		script = path
	case code != "":
		source, script = []byte(code), "<string>"
		fact.Path = script
	default:
		return nil
	}
	sum := sha256.Sum256(source)
	fact.SHA256 = hex.EncodeToString(sum[:])
	fact.MPI4py = importsMPI4py().Match(source) // this is a guess until the compiler has answered
	if ask.Compile {
		v.compile(ctx, interpreter, script, source, fact)
	}
	return fact
}

// compile makes the interpreter compile the source, and adds the answer to fact.
func (v Surveyor) compile(ctx context.Context, interpreter, name string, source []byte, fact *job.ScriptFact) {
	out, err := v.Children.RunHelper(ctx, interpreter, []string{interpreter, "-I", "-S", "-c", compileCode, name}, "/", v.Env, source, false)
	if err != nil {
		return // the trial will fail for the same reason
	}
	var answer struct {
		Syntax string `json:"syntax"`
		Line   int    `json:"line"`
		Source string `json:"source"`
		MPI4py bool   `json:"mpi4py"`
	}
	if json.Unmarshal(out, &answer) == nil {
		fact.Compiled = true
		if answer.Syntax == "" {
			fact.MPI4py = answer.MPI4py
		}
		fact.Syntax, fact.Line, fact.Source = answer.Syntax, answer.Line, answer.Source
	}
}
