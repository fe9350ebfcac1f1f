package preflight

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
)

// Document writes docs/preflight.md, from the same data that the checks are
// made of.
func Document(w io.Writer) error {
	var b strings.Builder
	b.WriteString(introduction)
	for _, c := range checks {
		fmt.Fprintf(&b, "\n### %s\n\n%s", c.Code, c.Asks)
		if len(c.DependsOn) > 0 {
			fmt.Fprintf(&b, " Skipped where `%s` failed.", strings.Join(c.DependsOn, "` or `"))
		}
		b.WriteString("\n\n| signature | severity | category | text | hint |\n|---|---|---|---|---|\n")
		for _, p := range c.Problems {
			category := "-"
			if p.Category != "" {
				category = "`" + string(p.Category) + "`"
			} else if p.Severity == job.SeverityError {
				category = "that of the failure"
			}
			hint := strings.Replace(p.Hint, "{hint}", "what the failure calls for; ", 1)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Signature, p.Severity, category, p.Text, hint)
		}
	}
	fmt.Fprintf(&b, trialDocument, time.Duration(job.DefaultTrialTime), job.DefaultTrialSteps,
		span(StartLimit), mayPass(), memory.Lifetime/time.Minute, memory.SourceDepth, memory.SourceEntries,
		job.KeptStdin>>20, "`"+strings.Join(services, "`, `")+"`", placeLimit, mostTried)
	_, err := io.WriteString(w, b.String())
	return err
}

// mayPass lists the categories of passing for a sentence.
func mayPass() string {
	var list []string
	for _, c := range job.Categories() {
		if passing(c) {
			list = append(list, "`"+string(c)+"`")
		}
	}
	return strings.Join(list, ", ")
}

const introduction = `# Preflight

Before gangrun starts a gang, it looks for faults that would break it. It first runs
static checks on every host, and then a trial, which is the job's own command on one
rank. ` + "`--preflight static`" + ` omits the trial, and ` + "`--preflight off`" + ` omits both.
` + "`gangrun preflight`" + ` does only the preflight.

After an error, the gang is not started; after a warning, it is. An error in the job's
inputs and paths ends the run with exit code 65, one in its program, libraries or
environment with 78 (see [exit-codes.md](exit-codes.md)). A finding that is the same on
several hosts is reported once, with the names of the hosts. A check is skipped on a
host on which a check that it depends on has failed, so that a missing program is one
finding and not five.

The hosts of a gang on several machines also test their connections, all at once. Each
opens a port on the network that the ranks will use, connects to every other host and
exchanges a secret with it. It writes a file into the checkpoint directory, which the
others look for. That takes at most 5 s for any number of hosts. If hosts differ, a
matrix shows it: a line for each host that differs, one for all others, and a ` + "`!`" + ` after
each difference. ` + "`--verbose`" + ` shows all of it, with the times between all hosts;
` + "`-o json`" + ` has it as ` + "`matrix{columns[], rows[]{host, cells[]{text, odd}, reach[]{to, address, time, error}}}`" + `,
times in nanoseconds.

## Checks

The names of checks and signatures do not change. ` + "`{path}`" + ` and the like in the
texts are replaced by what was found.
`

const trialDocument = `
## The trial

The trial runs the job's command unchanged, with ` + "`" + `trial.args` + "`" + ` added to its end,
or ` + "`" + `trial.command` + "`" + ` in its place, as one rank on one host. ` + "`" + `trial.env` + "`" + ` takes
precedence over the job's environment. The trial does not resume from a checkpoint. Its standard input is that
of the job: a file is read by the trial and again by the gang; of a pipe, up to %[8]d MiB are
kept for the gang.

It passes, and is ended, as soon as one of these holds:

- every rank has ended with exit code 0;
- it has printed ` + "`" + `trial.steps` + "`" + ` lines of progress (%[2]d); the same step counts once,
  whichever ranks print it;
- it has run for ` + "`" + `trial.time` + "`" + ` (%[1]s). A trial that hangs therefore passes. Only
  ` + "`" + `--timeout` + "`" + ` ends a gang that hangs.

` + "`" + `--trial off` + "`" + ` omits the trial. A gang of one rank has none, because it is its own
trial, but ` + "`" + `gangrun preflight` + "`" + ` runs one.

### What the trial writes is discarded

A trial is contained. Its ranks, and mpirun with its daemons, see the files of the host. What
they write, rename or remove goes into a layer in memory, which is discarded with them
(overlayfs in a mount namespace, and in a user namespace if gangrun is not root). That holds
for every file system, with the working directory, the home, ` + "`" + `/tmp` + "`" + `, ` + "`" + `/dev/shm` + "`" + ` and NFS.
The job's checkpoint directory is empty in the trial. If the program or its inputs are in it,
` + "`" + `GANGRUN_CHECKPOINT_DIR` + "`" + ` is another directory instead. So the gang never finds files of the
trial. Only the logs of the ranks are kept.

These things differ from the gang:

- The layer holds a quarter of the memory that is free, on the host or within its control group's
  limit. A trial that fills it has no result (` + "`" + `trial-full` + "`" + `).
- Sockets of services on the host cannot be reached, except those in ` + "`" + `/run` + "`" + ` (name
  services, for instance) and of NVIDIA's MPS. Services on the network can be reached. These are
  switched off by variables that you have not set yourself: %[9]s.
- Ranks do not see what ranks on another host write.
- Where gangrun is not root, a file can be changed only if it has the user's own ID and main
  group, whatever its mode allows, and setuid programs have no effect. If there are such files, a failed trial is
  only a warning, or is repeated on more ranks. Before Linux 6.6, a removed directory cannot
  be made again.
- Files are on an overlay: a write to a file separates it from its hard links, a mapping
  from before a write has the old contents, and O_DIRECT and ioctls of a file system may be
  refused.
- A failure with an error of the system that these differences can cause (` + "`" + `EPERM` + "`" + `, ` + "`" + `EROFS` + "`" + `,
  ` + "`" + `EXDEV` + "`" + `, ` + "`" + `EBUSY` + "`" + `, ` + "`" + `EOVERFLOW` + "`" + `, ` + "`" + `ESTALE` + "`" + `) is a warning (` + "`" + `trial-contained` + "`" + `).

Some hosts cannot contain a trial: Linux before 5.12, user namespaces that are switched
off (` + "`" + `sysctl user.max_user_namespaces` + "`" + `, ` + "`" + `kernel.unprivileged_userns_clone` + "`" + `,
` + "`" + `kernel.apparmor_restrict_unprivileged_userns` + "`" + `), a container that may not make any, or
a file system of the job on which overlays are not possible. Then there is no trial, and a
warning says why. ` + "`" + `--trial uncontained` + "`" + ` runs it nevertheless, on the
job's own files and with a separate, empty checkpoint directory. It compares the files
in the working directory, the checkpoint directory and the directories that the command
names (except ` + "`inputs:`" + `) before and after, up to 20000 of them. If some have
changed, the gang is not started, and the error names them.

### What a failure means

A job may fail only because the trial has one rank. A trial that fails is therefore repeated on two ranks, and then on all
ranks if they are at most %[11]d, fit on one host and get a place within %[10]s. ` + "`" + `trial: {ranks: N}` + "`" + `, or ` + "`" + `--trial-ranks N` + "`" + `, begins with N ranks instead of one. The
gang is not started

- if more ranks cannot help: an import, a library, the program or an
  input file is missing, the program cannot be parsed, permission is denied, or the
  driver is too old;
- if the trial failed on as many ranks as the gang has.

In all other cases there is a warning, and the gang starts:

- The trial failed on fewer ranks than the gang has (` + "`" + `trial-few-ranks` + "`" + `), or the program itself
  says that they are too few (` + "`" + `trial-world-size` + "`" + `). Set how it can be tried, as in ` + "`" + `trial: {ranks: 4}` + "`" + ` or
  ` + "`" + `trial: {args: [--tiny]}` + "`" + `.
- One rank has too little memory (` + "`" + `cpu-oom` + "`" + `, ` + "`" + `gpu-oom` + "`" + `).
- The cause may be gone at the next start. The trial is repeated once, unless
  ` + "`" + `retries` + "`" + ` is 0. These causes are %[4]s.
- It waits for standard input, which is a terminal or an empty pipe.
- Its ranks have not started within %[3]s.

### What is remembered

A good trial is remembered for %[5]d minutes, and not repeated for the same job
on the same hosts: the same program and script (by SHA-256), command, trial
settings, working directory and checkpoint directory, and inputs of the same size.
All variables of the ranks' environment are compared: those of the job, and
those of the shell in which gangrun was started, such as PATH, PYTHONPATH,
LD_LIBRARY_PATH, CONDA_PREFIX and what modules set. Only a hash of their values is
stored. Not compared are variables that differ from one shell, terminal, login or batch
job to the next and change nothing for the program, such as SHLVL, TERM, SSH_TTY
and SLURM_JOB_ID.

These files are compared by size and time, on the machine where gangrun was started:

- those that the arguments of the command name;
- the Python modules (.py and .so) in the script's directory (of ` + "`python -m`" + `, in
  the working directory) and in those of PYTHONPATH, %[6]d levels deep. With more
  than %[7]d files and directories beside the script, the trial is always run; of
  PYTHONPATH, only the modules directly in its directories are then compared;
- the libraries in the directories of LD_LIBRARY_PATH.

The packages of the job's Python are compared, too, and on several machines the versions
of libraries and packages on each host. Other changes, such as an edit in an installed
package, are not noticed. What a trial showed about MPI is remembered with it, so that
the gang starts in the same way. A trial with a warning is not remembered.
`
