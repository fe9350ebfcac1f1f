// Package jobcheck checks the values of a job.Spec.
package jobcheck

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/template"
)

// Spec returns all errors in the values of s, joined. It reads no files.
func Spec(s job.Spec) error {
	var errs faults
	checkSize(s, &errs)
	checkHosts(s, &errs)
	checkTrial(s, &errs)
	checkPaths(s, &errs)
	checkCommands(s, &errs)
	checkModes(s, &errs)
	checkCurve(s, &errs)
	checkContainer(s, &errs)
	return errors.Join(errs...)
}

// faults has the errors in the values of a Spec.
type faults []error

func (f *faults) add(errs ...error) { *f = append(*f, errs...) }

func (f *faults) bad(format string, args ...any) { f.add(fmt.Errorf(format, args...)) }

// checkSize checks the numbers of ranks and GPUs. If the number of ranks is wrong, checkSize does not compare other
// numbers with it.
func checkSize(s job.Spec, errs *faults) {
	if len(s.Command) == 0 || s.Command[0] == "" {
		errs.bad("there is no command to run")
	}
	if s.Ranks < 1 || s.Ranks > job.MaxRanks {
		errs.bad("ranks is %d, but must be 1 to %d", s.Ranks, job.MaxRanks)
	}
	if s.MinRanks < 0 || s.Ranks > 0 && s.MinRanks > s.Ranks {
		errs.bad("min-ranks is %d, but must be 0 to ranks (%d)", s.MinRanks, s.Ranks)
	}
}

// checkHosts checks where the gang will run, and how long gangrun waits for hosts.
func checkHosts(s job.Spec, errs *faults) {
	if s.Loopback < 0 || s.Loopback > job.MaxLoopback {
		errs.bad("loopback is %d, but must be 0 to %d", s.Loopback, job.MaxLoopback)
	}
	if s.GPUs < -1 {
		errs.bad("gpus-per-rank is %d, but must be 0 or more, or -1 for one where the hosts have any", s.GPUs)
	}
	lists := 0
	for _, list := range []string{s.Hosts, s.Hostfile, s.Inventory} {
		if list != "" {
			lists++
		}
	}
	if lists > 1 {
		errs.bad("hosts come from one list, but several of hosts, hostfile and inventory are given")
	}
	if s.Loopback > 0 && (s.Hosts != "" || s.Hostfile != "") {
		errs.bad("loopback simulates hosts on this machine and can be given with an inventory, but not with hosts or a hostfile")
	}
	if s.HostTimeout < job.Duration(time.Second) || s.OrphanGrace < job.Duration(time.Second) {
		errs.bad("host-timeout %s and orphan-grace %s must be at least 1s", s.HostTimeout, s.OrphanGrace)
	}
	if !slices.Contains(job.Localities(), s.Locality) {
		errs.bad("locality %q is none of island, host, rack and any", s.Locality)
	}
	if err := Patience(s.Patience); err != nil {
		errs.add(err)
	}
	if s.Requeue < 0 {
		errs.bad("requeue is %d, but must be 0 or more", s.Requeue)
	}
	if s.Retries < 0 {
		errs.bad("retries is %d, but must be 0 or more", s.Retries)
	}
}

// checkTrial checks the trial and the times of the gang.
func checkTrial(s job.Spec, errs *faults) {
	if s.Trial.Ranks < 0 || s.Ranks > 0 && s.Trial.Ranks > s.Ranks {
		errs.bad("trial.ranks is %d, but must be 0 to ranks (%d)", s.Trial.Ranks, s.Ranks)
	}
	if s.Trial.Steps < 1 {
		errs.bad("trial.steps is %d, but must be 1 or more", s.Trial.Steps)
	}
	if s.Trial.Time <= 0 {
		errs.bad("trial.time is %s, but must be more than 0", s.Trial.Time)
	}
	if s.Progress != "" {
		if _, err := job.CompileProgress(s.Progress); err != nil {
			errs.add(err)
		}
	}
	if s.Grace < 0 || s.Timeout < 0 || s.InitTimeout < 0 || s.HangTimeout < 0 {
		errs.bad("grace %s, timeout %s, init-timeout %s and hang-timeout %s must not be negative", s.Grace, s.Timeout, s.InitTimeout, s.HangTimeout)
	}
	if s.StragglerWindow < 0 {
		errs.bad("straggler-window %s must not be negative", s.StragglerWindow)
	}
	if s.BeforeStopWait < 0 || s.TimeReserve < 0 {
		errs.bad("before-stop-wait %s and time-reserve %s must not be negative", s.BeforeStopWait, s.TimeReserve)
	}
}

func checkPaths(s job.Spec, errs *faults) {
	if !filepath.IsAbs(s.Workdir) {
		errs.bad("workdir %q is not an absolute path", s.Workdir)
	}
	if s.CheckpointDir != "" && !filepath.IsAbs(s.CheckpointDir) {
		errs.bad("checkpoint-dir %q is not an absolute path", s.CheckpointDir)
	}
	if s.Resume && s.CheckpointDir == "" {
		errs.bad("resume needs a checkpoint-dir")
	}
	for _, in := range s.Inputs {
		if in == "" || strings.ContainsRune(in, 0) {
			errs.bad("input %q is not a path", in)
		}
	}
}

// checkCommands checks the arguments and the environment of every program.
func checkCommands(s job.Spec, errs *faults) {
	for _, env := range []map[string]string{s.Env, s.Trial.Env, s.RetryOnDiverge.Env} {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(env[name], 0) {
				errs.bad("environment variable %q has a name or value that no process can be given", name)
			}
		}
	}
	for _, args := range [][]string{s.Command, s.Trial.Command, s.Trial.Args} {
		if slices.ContainsFunc(args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
			errs.bad("an argument of the command contains a NUL byte")
		}
	}
	errs.add(lengths(s)...)
	commands := [][]string{s.Trial.Command, s.Trial.Args}
	if len(s.Apps) == 0 {
		commands = append(commands, s.Command)
	}
	for _, app := range s.Apps {
		commands = append(commands, app.Command)
	}
	for _, args := range commands {
		if err := template.Check(args); err != nil {
			errs.add(err)
		}
	}
	if _, err := job.ParseStdin(string(s.Stdin), max(s.Ranks, 1)); err != nil {
		errs.add(err)
	}
}

// checkModes checks the policy, and values that must be one of a few words.
func checkModes(s job.Spec, errs *faults) {
	for _, err := range []error{
		check("preflight", s.Preflight, job.PreflightModes()),
		check("health", cmp.Or(s.Health, job.HealthOff), job.HealthModes()),
		check("output", s.Output, job.OutputModes()),
		check("trial", cmp.Or(s.Trial.Mode, job.TrialOn), job.TrialModes()),
		check("tty", s.TTY, job.TTYs()),
		check("exit-code", s.ExitCode, job.ExitModes()),
		check("mpi", s.MPI, job.MPIs()),
		check("gpu-visibility", cmp.Or(s.GPUVisibility, job.GPUVisibilityGang), job.GPUVisibilities()),
		check("env-compat", s.EnvCompat, job.EnvCompats()),
		check("watch", cmp.Or(s.Watch, job.WatchOn), job.WatchModes()),
		check("on-signal", cmp.Or(s.OnSignal, job.OnSignalPass), job.OnSignals()),
		check("before-stop", cmp.Or(s.BeforeStop, job.BeforeStopNone), job.BeforeStops()),
		check("launcher", cmp.Or(s.Launcher, job.LauncherAuto), job.LauncherModes()),
	} {
		if err != nil {
			errs.add(err)
		}
	}
	if s.EnvCompat != job.EnvCompatNone && s.MPI.Family() != "" {
		errs.bad("env-compat is for ranks that no MPI starts, but mpi is %s, which sets variables of its own", s.MPI)
	}
	for _, c := range slices.Sorted(maps.Keys(s.Policy)) {
		if !slices.Contains(job.Categories(), c) {
			errs.bad("policy names %q, which is no category", c)
		}
		if !slices.Contains(job.Actions(), s.Policy[c]) {
			errs.bad("policy gives %s the action %q, which is none of never, once, again, elsewhere", c, s.Policy[c])
		}
	}
}

// checkCurve checks the settings for curves, and how gangrun asks for a checkpoint.
func checkCurve(s job.Spec, errs *faults) {
	for _, err := range []error{
		EarlyStop(s.EarlyStop),
		check("curve.goal", cmp.Or(s.Curve.Goal, job.GoalAuto), job.Goals()),
		check("retry-on-diverge.resume", cmp.Or(s.RetryOnDiverge.Resume, job.DivergeOff), job.DivergeResumes()),
	} {
		if err != nil {
			errs.add(err)
		}
	}
	if _, err := strconv.ParseFloat(s.Curve.Target, 64); err != nil && s.Curve.Target != "" {
		errs.bad("curve.target %q is no number", s.Curve.Target)
	}
	if s.Curve.Total < 0 || s.Curve.DecayEnd < -1 {
		errs.bad("curve.total is %d and curve.decay-end %d, but must be 0 or more (-1 if decay-end is not known)", s.Curve.Total, s.Curve.DecayEnd)
	}
	if d := s.RetryOnDiverge; d.SkipSteps < 0 || d.Times < 0 {
		errs.bad("retry-on-diverge.skip-steps is %d and retry-on-diverge.times %d, but must be 0 or more", d.SkipSteps, d.Times)
	}
	inVain(s, errs)
	if s.CheckpointDir == "" && s.RetryOnDiverge.Resume == job.DivergeEarlier {
		errs.bad("retry-on-diverge needs a checkpoint-dir")
	}
	if s.CheckpointDir == "" && s.BeforeStop == job.BeforeStopFile {
		errs.bad("before-stop file needs a checkpoint-dir, in which the file is made")
	}
}

func check[M ~string](what string, m M, modes []M) error {
	_, err := job.ParseMode(what, string(m), modes)
	return err
}

// checkContainer checks the image and the containers.
func checkContainer(s job.Spec, errs *faults) {
	c := s.Container
	c.Network = cmp.Or(c.Network, job.NetworkHost)
	if s.Image == "" && !reflect.DeepEqual(c, job.Default().Container) {
		errs.bad("the job has settings of containers, but no image")
	}
	if s.Image != "" && s.Trial.Mode == job.TrialUncontained {
		errs.bad("the trial of a job with an image runs in a container of its own: it cannot be uncontained")
	}
	if strings.ContainsAny(s.Image, "\x00\n") {
		errs.bad("image %q is neither a reference nor a path", s.Image)
	}
	if _, err := s.Mounted(); err != nil {
		errs.add(err)
	}
	if c.Workdir != "" && !filepath.IsAbs(c.Workdir) {
		errs.bad("the working directory %q of the containers is not an absolute path", c.Workdir)
	}
	if !slices.Contains(job.ContainerNetworks(), c.Network) {
		errs.bad("%q is no network of containers: use host or none", c.Network)
	}
	if _, _, err := c.IDs(); err != nil {
		errs.add(err)
	}
	if c.CPUs < 0 || c.Memory < 0 || c.ShmSize < 0 {
		errs.bad("container.cpus, container.memory and container.shm-size must not be negative")
	}
}
