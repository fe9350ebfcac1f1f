// Package submit puts a job into Slurm's queue: first its trial, as a small job, and then its gang, which starts only
// if the trial has passed. So a mistake in the job is found before the job waits for many nodes.
package submit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/shell"
)

// Request is what to submit.
type Request struct {
	Spec    job.Spec
	Gangrun string   // path of gangrun, the same on all nodes
	File    string   // path of the job file
	Flags   []string // flags of sbatch that the user has given
}

// Batch is one batch job.
type Batch struct {
	Args   []string // arguments of sbatch
	Script string
}

// Plan has the batch jobs to submit: first Trial, then Gang. Trial is nil if the job has no
// trial.
type Plan struct {
	Trial *Batch
	Gang  Batch
}

// trialMinutes is the time limit of the trial's job, in minutes.
const trialMinutes = 5

// Make returns the plan for a request.
func Make(r Request) Plan {
	name := r.Spec.Name
	if name == "" && len(r.Spec.Command) > 0 {
		name = filepath.Base(r.Spec.Command[0])
	}
	p := Plan{Gang: Batch{
		Args:   append([]string{"--job-name=" + name, "--requeue", "--no-kill", "--open-mode=append"}, size(r)...),
		Script: script(r, "run"),
	}}
	p.Gang.Args = append(p.Gang.Args, r.Flags...)
	if r.Spec.Preflight != job.PreflightFull || r.Spec.Trial.Mode == job.TrialOff {
		return p
	}
	p.Gang.Script = script(r, "run", "--trial", "off")
	args := append([]string{"--job-name=" + name + "-trial"}, kept(r.Flags)...)
	args = append(args, "-N1", "-n1", fmt.Sprintf("-t%d", trialMinutes))
	if gpus(r) {
		args = append(args, "--gres=gpu:"+strconv.Itoa(max(1, r.Spec.GPUs)))
	}
	p.Trial = &Batch{Args: args, Script: script(r, "preflight", "--ranks", "1", "--min-ranks", "0")}
	return p
}

// After returns a copy of b that starts only if the job with the given ID has ended with code
// 0.
func (b Batch) After(id string) Batch {
	b.Args = append([]string{"--dependency=afterok:" + id, "--kill-on-invalid-dep=yes"}, b.Args...)
	return b
}

// script returns a batch script that runs a command of gangrun on the job file.
func script(r Request, command ...string) string {
	words := append(append([]string{r.Gangrun}, command...), r.File)
	for i, w := range words {
		words[i] = shell.Quote(w)
	}
	return "#!/bin/bash\nexec " + strings.Join(words, " ") + "\n"
}

// size returns the flags for the size of the gang, unless the user has given such flags.
func size(r Request) (args []string) {
	if !has(r.Flags, "-N", "--nodes", "-n", "--ntasks", "--ntasks-per-node") {
		args = append(args, "-n"+strconv.Itoa(r.Spec.Ranks))
	}
	if r.Spec.GPUs > 0 && !gpus(Request{Flags: r.Flags}) {
		args = append(args, "--gpus-per-task="+strconv.Itoa(r.Spec.GPUs))
	}
	return args
}

// gpus reports whether the job wants GPUs.
func gpus(r Request) bool {
	if r.Spec.GPUs > 0 || has(r.Flags, "-G", "--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket") {
		return true
	}
	return slices.ContainsFunc(r.Flags, func(f string) bool { return strings.Contains(f, "gpu:") || f == "--gres=gpu" })
}

// keptFlags has the flags of sbatch that say where a job may run, who pays for it, and how much of a node one task
// needs. The trial's job gets them, too.
var keptFlags = []string{"-p", "--partition", "-A", "--account", "-q", "--qos", "-C", "--constraint", "--reservation", "-M", "--clusters", "-c", "--cpus-per-task", "--mem", "--mem-per-cpu", "-x", "--exclude", "--wckey", "-D", "--chdir", "--export", "--export-file"}

// kept returns those of the user's flags that the trial's job gets, too.
func kept(flags []string) (found []string) {
	for i := 0; i < len(flags); i++ {
		name, _, joined := strings.Cut(flags[i], "=")
		short := len(name) > 2 && name[0] == '-' && name[1] != '-' // as in -pgpu
		if short {
			name, joined = name[:2], true
		}
		if !slices.Contains(keptFlags, name) {
			continue
		}
		found = append(found, flags[i])
		if !joined && i+1 < len(flags) {
			i++
			found = append(found, flags[i])
		}
	}
	return found
}

// has reports whether flags contains one of the flags in names.
func has(flags []string, names ...string) bool {
	return slices.ContainsFunc(flags, func(f string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			if strings.HasPrefix(n, "--") {
				return f == n || strings.HasPrefix(f, n+"=")
			}
			return strings.HasPrefix(f, n) && !strings.HasPrefix(f, "--")
		})
	})
}
