package survey

import (
	"path/filepath"
	"strings"

	"github.com/gangrun/gangrun/internal/pattern"
)

// pythonName matches the names under which Python interpreters are installed.
var pythonName = pattern.New(`^(python|pypy)[0-9.]*$`)

// pythonProgram returns what a Python command line runs: the path of a script, or the code after -c. Both are empty if
// the command line runs a module (-m) or standard input. See python(1).
func pythonProgram(args []string) (script, code string) {
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case !strings.HasPrefix(arg, "-"):
			return arg, ""
		case arg == "-":
			return "", "" // standard input; the other words are arguments of the program
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
		// Short options may be combined, as in -uc. The options c, m, W and X take the rest of the word as their value
		// or, if there is no rest, the next word.
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

// IsPython reports whether a program is a Python interpreter. It judges by name, the name in the command, and
// by path, where the program was found.
func IsPython(name, path string) bool {
	return pythonName.Match(filepath.Base(name)) || pythonName.Match(filepath.Base(path))
}
