package userenv

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobcheck"
	"github.com/gangrun/gangrun/internal/text"
)

const (
	// Linux limits how many bytes the arguments and the environment of a new process have together. minSize and maxSize
	// are bounds of that limit, whatever the limit of the stack is; see execve(2).
	minSize = 128 << 10
	maxSize = 6 << 20
	// reserve is the room for what gangrun and the launcher of an MPI add.
	reserve = 16 << 10
	// pointerSize is the size of the pointer that each string needs in addition to its bytes and its NUL byte.
	pointerSize = 8
)

// SizeLimit returns how many bytes the arguments and the environment of a child process may
// have together.
func SizeLimit() int {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return maxSize
	}
	return int(max(min(stack.Cur/4, maxSize), minSize)) // RLIM_INFINITY is the largest number
}

// CheckSize returns an error if ranks of the job cannot start because their arguments and
// environment have more than limit bytes. inherited is the part of the user's environment
// that ranks get.
func CheckSize(spec job.Spec, inherited []string, limit int) error {
	for _, env := range environmentsOf(spec, inherited) {
		for _, command := range jobcheck.Commands(spec) {
			size, longest := reserve, ""
			for _, s := range slices.Concat(command, env) {
				size += len(s) + 1 + pointerSize
				if len(s) > len(longest) {
					longest = s
				}
			}
			if size <= limit {
				continue
			}
			what := "an argument"
			if name, _, _ := strings.Cut(longest, "="); slices.Contains(env, longest) {
				what = "the variable " + name
			}
			return failure.Usage("raise the limit of the stack (ulimit -s), unset variables that the job does not need, or write long arguments to a file",
				"the arguments and the environment of a rank take %d bytes together, of which %s takes %d; with this limit of the stack Linux gives a process %d at most",
				size, text.Printable(what), len(longest), limit)
		}
	}
	return nil
}

// environmentsOf returns the environments that processes of a job may have: one for each of its programs, and one for
// its trial.
func environmentsOf(spec job.Spec, inherited []string) [][]string {
	var all [][]string
	for _, own := range slices.Concat([]map[string]string{nil, spec.Trial.Env, spec.RetryOnDiverge.Env}, appEnvs(spec)) {
		layers := [2][]string{}
		for i, set := range []map[string]string{spec.Env, own} {
			for _, name := range slices.Sorted(maps.Keys(set)) {
				layers[i] = append(layers[i], name+"="+set[name])
			}
		}
		all = append(all, environ.Overlay(inherited, layers[0], layers[1]))
	}
	return all
}

func appEnvs(spec job.Spec) (envs []map[string]string) {
	for _, app := range spec.Apps {
		envs = append(envs, app.Env)
	}
	return envs
}
