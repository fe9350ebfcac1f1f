// Package faulthandler makes Python programs write down their stacks when they get a signal,
// without a change to the program, and reads what they write. It uses Python's own module
// faulthandler, whose signal handler needs no lock of Python: it works even if a thread never gives
// back the global interpreter lock.
package faulthandler

import (
	_ "embed"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Signal asks a Python process for its stacks. It is SIGRTMIN+23 of the GNU C library: programs
// that use real-time signals themselves count from one of both ends. It ends a process that does not
// handle it.
const Signal = unix.Signal(57)

// Env is the environment variable that names the file to which a Python process writes its stacks.
// The forks of a process write to the same file.
const Env = "GANGRUN_FAULTHANDLER"

// pathEnv is where Python looks for modules first. Python imports the module sitecustomize when it
// starts, unless it was started with -I, -E or -S.
const pathEnv = "PYTHONPATH"

//go:embed sitecustomize.py
var module []byte

// Install writes the Python module into the directory dir, which must exist and should hold nothing
// else.
func Install(dir string) error {
	return os.WriteFile(filepath.Join(dir, "sitecustomize.py"), module, 0o644)
}

// Environ returns the environment variables, as "NAME=VALUE", that make a Python program use the
// module in the directory dir and write its stacks to file. pythonPath is the PYTHONPATH that the
// program would have otherwise. All paths must be absolute.
func Environ(pythonPath, dir, file string) []string {
	if pythonPath != "" {
		dir += string(os.PathListSeparator) + pythonPath
	}
	return []string{pathEnv + "=" + dir, Env + "=" + file}
}
