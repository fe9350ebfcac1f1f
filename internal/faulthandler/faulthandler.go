// Package faulthandler makes Python programs write their stacks to a file when they get a signal, and reads
// that file. The programs need not be changed. The package uses Python's own module faulthandler, whose
// signal handler takes no lock of Python. So it works even if a thread never releases the global interpreter
// lock.
package faulthandler

import (
	_ "embed"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Signal is the signal that makes a Python process write its stacks. It is SIGRTMIN+23 of the GNU C library, because
// programs that use real-time signals usually take the first or the last of them. Signal ends a process that does not
// handle it.
const Signal = unix.Signal(57)

// Env is the environment variable with the path of the file to which a Python process writes its stacks.
// Forks of the process write to the same file.
const Env = "GANGRUN_FAULTHANDLER"

// pathEnv is the environment variable with the directories in which Python looks for modules first. Python
// imports the module sitecustomize when it starts, unless it is started with -I, -E or -S.
const pathEnv = "PYTHONPATH"

//go:embed sitecustomize.py
var module []byte

// Install writes the Python module into dir. The directory must exist, and should have no other files.
func Install(dir string) error {
	return os.WriteFile(filepath.Join(dir, "sitecustomize.py"), module, 0o644)
}

// Environ returns the environment variables, as "NAME=VALUE", with which a Python program imports the module
// in dir and writes its stacks to file. pythonPath is the PYTHONPATH that the program would have otherwise.
// All paths must be absolute.
func Environ(pythonPath, dir, file string) []string {
	if pythonPath != "" {
		dir += string(os.PathListSeparator) + pythonPath
	}
	return []string{pathEnv + "=" + dir, Env + "=" + file}
}
