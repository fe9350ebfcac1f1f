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

// trialEnviron returns the environment of the trial's ranks. It is base with the variables of the job and of
// the trial.
func trialEnviron(base []string, spec job.Spec) []string {
	return environ.Overlay(base, variables(spec.Env), variables(spec.Trial.Env))
}
