package preflight

import (
	"maps"
	"slices"

	"github.com/gangrun/gangrun/internal/environ"
	"github.com/gangrun/gangrun/internal/job"
)

// variables returns a job's variables as an environment, sorted by name.
func variables(vars map[string]string) []string {
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// trialEnviron returns the environment that the trial's ranks get: base with the
// job's variables and those of its trial over it.
func trialEnviron(base []string, spec job.Spec) []string {
	return environ.Overlay(base, variables(spec.Env), variables(spec.Trial.Env))
}
