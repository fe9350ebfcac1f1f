package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// pythonName matches the names under which Python interpreters are installed.
var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)

// pythonProgram finds what a Python command line runs: a script's path, the
// code behind -c, or neither (-m, or standard input). See python(1).
func pythonProgram(args []string) (script, code string) {
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case !strings.HasPrefix(arg, "-"):
			return arg, ""
		case arg == "-":
			return "", "" // standard input; what follows is for the program
		case arg == "--":
			if i+1 < len(args) && args[i+1] != "-" {
				return args[i+1], ""
			}
			return "", ""
		case strings.HasPrefix(arg, "--"):
			if arg == "--check-hash-based-pycs" || arg == "--jit" { // the latter is PyPy's
				i++ // its value
			}
			continue
		}
		// Short options may stand together, as in -uc; these take the rest
		// of the word, or the next word, as their value.
		if at := strings.IndexAny(arg, "cmWX"); at > 0 {
			value := arg[at+1:]
			if value == "" && i+1 < len(args) {
				i++
				value = args[i]
			}
			switch arg[at] {
			case 'c':
				return "", value
			case 'm':
				return "", ""
			}
		}
	}
	return "", ""
}

// importsMPI4py matches a line that imports mpi4py, or a text that looks like it.
var importsMPI4py = regexp.MustCompile(`(?m)(^|[;:])[ \t]*(from[ \t]+mpi4py\b|import[ \t]+([\w., \t]*,[ \t]*)?mpi4py\b)`)

// isPython reports whether a program is a Python interpreter, by the name that it
// was called by or that it was found under.
func isPython(name, path string) bool {
	return pythonName.MatchString(filepath.Base(name)) || pythonName.MatchString(filepath.Base(path))
}

// compileCode compiles what it reads and prints, as JSON, the error or whether
// it imports mpi4py at any level. It runs isolated (-I) and imports nothing of the
// user's.
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

// script says what Python is to run, and whether it compiles; nil when the
// program is no Python interpreter or runs no file and no -c.
func (v surveyor) script(ctx context.Context, ask job.Survey, interpreter string) *job.ScriptFact {
	if !isPython(ask.Command[0], interpreter) {
		return nil
	}
	script, code := pythonProgram(ask.Command)
	fact := &job.ScriptFact{}
	var source []byte
	switch {
	case script != "":
		path := resolve(ask.Workdir, script)
		fact.PathFact = readable(path)
		if fact.Dir {
			// A directory or package with __main__.py.
			path = filepath.Join(path, "__main__.py")
			fact.PathFact = readable(path)
		}
		if fact.Kind != job.ErrorNone {
			return fact
		}
		info, err := os.Stat(path)
		if err == nil && !info.Mode().IsRegular() {
			return fact // a FIFO gives its bytes once, and to the program
		}
		if source, err = os.ReadFile(path); err != nil {
			fail(&fact.PathFact, err)
			return fact
		}
		if strings.HasPrefix(string(source), "PK\x03\x04") {
			return fact // a zip application
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
	fact.MPI4py = importsMPI4py.Match(source) // the compiler knows better
	if ask.Compile {
		v.compile(ctx, interpreter, script, source, fact)
	}
	return fact
}

func (v surveyor) compile(ctx context.Context, interpreter, name string, source []byte, fact *job.ScriptFact) {
	out, err := v.children.RunHelper(ctx, interpreter, []string{interpreter, "-I", "-S", "-c", compileCode, name}, "/", v.env, source, false)
	if err != nil {
		return // the trial will tell
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
