// Package submit puts a job into Slurm's queue: first its trial, as a small job, and then its gang, which starts only
// if the trial has passed. So a mistake in the job is found before the job waits for many nodes.
package submit

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Args   []string `json:"args"` // arguments of sbatch
	Script string   `json:"script"`
}

// Plan has the batch jobs to submit: first Trial, then Gang. Trial is nil if the job has no
// trial.
type Plan struct {
	Trial *Batch `json:"trial"`
	Gang  Batch  `json:"gang"`
}

// leastMinutes is the shortest time limit of the trial's job, in minutes.
const leastMinutes = 5

// minutes returns the time limit of the trial's job, in minutes. If a trial fails, preflight may try once more. The checks
// and the start of the ranks have two minutes.
func minutes(spec job.Spec) int {
	tries := time.Duration(1 + min(1, spec.Retries))
	return max(leastMinutes, int(math.Ceil((2*time.Minute + tries*time.Duration(spec.Trial.Time+spec.Grace)).Minutes())))
}

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
	ranks := max(1, r.Spec.Trial.Ranks)
	if slices.ContainsFunc(split(r.Flags), flag.depends) {
		args = append(args, killInvalid)
	}
	gpuFlag := "--gpus-per-task=" // several ranks may need several nodes
	if ranks == 1 {
		args, gpuFlag = append(args, "-N1"), "--gres=gpu:"
	}
	args = append(args, fmt.Sprintf("-n%d", ranks), fmt.Sprintf("-t%d", minutes(r.Spec)))
	if gpus(r) {
		args = append(args, gpuFlag+strconv.Itoa(max(1, r.Spec.GPUs)))
	}
	p.Trial = &Batch{Args: args, Script: script(r, "preflight", "--ranks", strconv.Itoa(ranks), "--min-ranks", "0", "--gang-ranks", strconv.Itoa(r.Spec.Ranks))}
	return p
}

// After returns a copy of b that starts only if the job with the given ID has ended with code
// 0. Dependencies that the user has given remain, if Slurm can combine them with this one.
func (b Batch) After(id string) Batch {
	on, args := "afterok:"+id, []string{}
	for _, f := range split(b.Args) {
		switch {
		case !f.depends():
			args = append(args, f.words...)
		case !strings.Contains(f.value, "?"): // Slurm does not mix ? with the comma, and the trial has waited for these jobs
			on += "," + f.value
		}
	}
	b.Args = append([]string{"--dependency=" + on, killInvalid}, args...)
	return b
}

// killInvalid makes Slurm remove a job that waits for a job that has failed.
const killInvalid = "--kill-on-invalid-dep=yes"

// depends reports whether the flag names jobs for which the job waits. sbatch takes an abbreviation, too.
func (f flag) depends() bool {
	return f.name == "-d" || strings.HasPrefix(f.name, "--dep") && strings.HasPrefix("--dependency", f.name)
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

// keptFlags has the flags of sbatch that say where a job may run, who pays for it, and how much of a node one task needs.
// The trial's job gets these flags, too.
var keptFlags = []string{"-p", "--partition", "-A", "--account", "-q", "--qos", "-C", "--constraint", "--reservation", "-M", "--clusters", "-c", "--cpus-per-task", "--mem", "--mem-per-cpu", "-x", "--exclude", "--wckey", "-D", "--chdir", "--export", "--export-file"}

// flag is a flag of sbatch.
type flag struct {
	name, value string
	words       []string // as the user has given it
}

// split returns the flags in words. A value in a word of its own belongs to the flag before it only if that flag is in
// keptFlags or names dependencies. Otherwise, split returns the value as a flag.
func split(words []string) (flags []flag) {
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		if short := len(name) > 2 && name[0] == '-' && name[1] != '-'; short { // as in -pgpu
			name, value, joined = name[:2], words[i][2:], true
		}
		f := flag{name, value, words[i : i+1]}
		if !joined && i+1 < len(words) && (slices.Contains(keptFlags, name) || f.depends()) {
			f.value, f.words = words[i+1], words[i:i+2]
			i++
		}
		flags = append(flags, f)
	}
	return flags
}

// kept returns the user's flags that the trial's job also gets: those in keptFlags, and its dependencies.
func kept(flags []string) (found []string) {
	for _, f := range split(flags) {
		if slices.Contains(keptFlags, f.name) || f.depends() {
			found = append(found, f.words...)
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
