package main

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

const (
	// leastExec and mostExec bound what Linux lets the arguments and the environment of
	// a new process take together, whatever the limit of its stack; see execve(2).
	leastExec = 128 << 10
	mostExec  = 6 << 20
	// ownExec is what gangrun, and an MPI's launcher, may add of their own.
	ownExec = 16 << 10
	// pointer is what each of them takes beside its bytes and the NUL at its end.
	pointer = 8
)

// execLimit returns how many bytes the arguments and the environment of a process may
// take that this one starts.
func execLimit() int {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return mostExec
	}
	return int(max(min(stack.Cur/4, mostExec), leastExec)) // RLIM_INFINITY is the largest number
}

// fitsExec refuses a job whose ranks could not be started since their arguments and
// environment are too long together. inherited is the environment of this process.
func fitsExec(spec job.Spec, inherited []string, limit int) error {
	for _, env := range environmentsOf(spec, inherited) {
		for _, command := range spec.Commands() {
			size, longest := ownExec, ""
			for _, text := range slices.Concat(command, env) {
				size += len(text) + 1 + pointer
				if len(text) > len(longest) {
					longest = text
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

// environmentsOf are those that processes of a job may have: of its ranks, those of each
// of its programs, and of its trial.
func environmentsOf(spec job.Spec, inherited []string) [][]string {
	var all [][]string
	for _, own := range slices.Concat([]map[string]string{nil, spec.Trial.Env}, appEnvs(spec)) {
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
