package mpiexec

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// Spec returns the job that the arguments ask for, for the working directory cwd.
func (a Args) Spec(cwd string) job.Spec {
	spec := job.Default()
	spec.Command, spec.Ranks, spec.Loopback, spec.Env = a.apps[0].Command, a.ranks(), a.loopback, maps.Clone(a.env)
	spec.Workdir, spec.Timeout, spec.MPI, spec.Stdin = cwd, job.Duration(a.timeout), a.mpi, a.stdin
	spec.Preflight, spec.Retries, spec.Output, spec.HangTimeout, spec.EarlyStop = job.PreflightOff, 0, job.OutputAll, 0, job.EarlyStop(job.EarlyOff)
	spec.StragglerWindow = 0
	spec.GPUs = 0 // mpiexec knows of none
	apps := slices.Clone(a.apps)
	for i := range apps {
		if dir := apps[i].Workdir; dir != "" && !filepath.IsAbs(dir) {
			apps[i].Workdir = filepath.Join(cwd, dir)
		}
	}
	if len(apps) > 1 {
		spec.Apps = apps
		return spec
	}
	maps.Copy(spec.Env, apps[0].Env)
	if apps[0].Workdir != "" {
		spec.Workdir = apps[0].Workdir
	}
	return spec
}

// Relative reports whether the directory of any program depends on the working directory.
func (a Args) Relative() bool {
	return slices.ContainsFunc(a.apps, func(app job.App) bool { return !filepath.IsAbs(app.Workdir) })
}
