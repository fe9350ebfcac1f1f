package preflight

import (
	"fmt"
	"io"
	"strings"
	"time"

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
		span(StartLimit), mayPass(), Lifetime/time.Minute, sourceDepth, sourceEntries,
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

The trial runs the job's command as it is, with ` + "`" + `trial.args` + "`" + ` added to its end,
or ` + "`" + `trial.command` + "`" + ` in its place, and with ` + "`" + `trial.env` + "`" + ` over the job's
environment: one rank on one host. It resumes from nothing. Standard input is the
job's: a file is read by the trial and again by the gang; of a pipe up to %[8]d MiB are
kept for the gang.

It has passed as soon as one of these holds, and is then ended:

- every rank has ended with exit code 0;
- it has printed ` + "`" + `trial.steps` + "`" + ` lines of progress (%[2]d); the same step counts once,
  whichever ranks print it;
- it has stayed alive for ` + "`" + `trial.time` + "`" + ` (%[1]s) from its start. So a trial that
  hangs passes, and so may a gang that hangs: nothing ends it but ` + "`" + `--timeout` + "`" + `.

` + "`" + `--trial off` + "`" + ` leaves the trial out. A gang of one rank needs none: it is its own
trial. ` + "`" + `gangrun preflight` + "`" + ` tries a job of one rank as well.

### Nothing that it writes lasts

A trial is contained: on each of its hosts the ranks, and mpirun with its daemons, see
the files as they are, and everything that they write, rename or remove goes into a
layer in memory that is thrown away with them (overlayfs in a mount namespace, and in a
user namespace where gangrun is not root). That holds for every file system, the working
directory, home, ` + "`" + `/tmp` + "`" + ` and ` + "`" + `/dev/shm` + "`" + ` included, and for NFS as well. The job's
checkpoint directory is found empty, unless the program or its inputs lie in it: then
` + "`" + `GANGRUN_CHECKPOINT_DIR` + "`" + ` names another one. So the gang can neither resume from what the
trial wrote nor stumble over it. Only the logs of the ranks are kept.

What differs from the gang's world:

- The layer holds a quarter of the memory that is free, on the host or within its control group's
  limit. A trial that fills it shows nothing (` + "`" + `trial-full` + "`" + `).
- A socket of a service on the host cannot be reached, but for those in ` + "`" + `/run` + "`" + ` (name
  services, for instance) and NVIDIA's MPS. Services on the network can: these are switched off by
  variables, unless you have set them yourself: %[9]s.
- Ranks on several hosts do not see what those on another one write.
- Where gangrun is not root, a file can be changed only if it has the user's own ID and main
  group, whatever its mode allows, and setuid programs have no effect. A trial that fails
  where such files lie is a warning, or only asks for more ranks. Before Linux 6.6 a
  removed directory cannot be made again.
- Files are on an overlay: hard links that were there come apart when one is written, a mapping
  that was made before a write shows the old content, and O_DIRECT and a file system's own
  ioctls may be refused.
- A failure with one of the system's errors that these things cause (` + "`" + `EPERM` + "`" + `, ` + "`" + `EROFS` + "`" + `,
  ` + "`" + `EXDEV` + "`" + `, ` + "`" + `EBUSY` + "`" + `, ` + "`" + `EOVERFLOW` + "`" + `, ` + "`" + `ESTALE` + "`" + `) is a warning (` + "`" + `trial-contained` + "`" + `).

Some hosts cannot contain a trial: Linux before 5.12, user namespaces that are switched
off (` + "`" + `sysctl user.max_user_namespaces` + "`" + `, ` + "`" + `kernel.unprivileged_userns_clone` + "`" + `,
` + "`" + `kernel.apparmor_restrict_unprivileged_userns` + "`" + `), a container that may not make any, or
a file system under the job that no overlay may lie over. Then the trial is left
out, with a warning that says why. ` + "`" + `--trial uncontained` + "`" + ` runs it all the same, among the
job's own files and with an empty checkpoint directory of its own. It compares the files
in the working directory, the checkpoint directory and the directories that the command
names (but for ` + "`inputs:`" + `) before and after, up to 20000 of them. Where some have
changed, the gang is not started, and the error names them.

### What a failure means

One rank is not the job. So a trial that fails is repeated on two ranks, and then on all
ranks if they fit on one host, get a place within %[10]s and are at most %[11]d. ` + "`" + `trial: {ranks: N}` + "`" + `, or ` + "`" + `--trial-ranks N` + "`" + `, begins with N ranks instead of one. The
gang is refused with the cause that diagnosis finds

- at once, if more ranks cannot help: an import, a library, the program or an
  input file is missing, the program cannot be parsed, permission is denied, or the
  driver is too old;
- if the trial failed on as many ranks as the gang has.

In all other cases you get a warning, and the gang starts:

- The trial failed on fewer ranks than the gang has (` + "`" + `trial-few-ranks` + "`" + `), or the program itself
  complains of too few (` + "`" + `trial-world-size` + "`" + `). Say how it can be tried, as in ` + "`" + `trial: {ranks: 4}` + "`" + ` or
  ` + "`" + `trial: {args: [--tiny]}` + "`" + `.
- One rank has too little memory (` + "`" + `cpu-oom` + "`" + `, ` + "`" + `gpu-oom` + "`" + `).
- What ended it may be gone at the next start. The step is repeated once, unless
  ` + "`" + `retries` + "`" + ` is 0. These causes are %[4]s.
- It waits for standard input that is a terminal, or a pipe that is empty for now.
- Its ranks have not started within %[3]s.

### What is remembered

A good trial is remembered for %[5]d minutes, and not repeated for the same job
on the same hosts: the same program and script (by SHA-256), command, trial
settings, working directory and checkpoint directory, and inputs of the same size.
The whole environment that reaches the ranks counts: the job's own variables, and
those of the shell that gangrun was started in, such as PATH, PYTHONPATH,
LD_LIBRARY_PATH, CONDA_PREFIX and what modules set. Their values go into a hash
only. Left out are variables that differ from one shell, terminal, login or batch
job to the next and change nothing for the program, such as SHLVL, TERM, SSH_TTY
and SLURM_JOB_ID.

These files count by size and time, on the machine where gangrun was started:

- those that the command's arguments name;
- the Python modules (.py and .so) in the script's directory (of ` + "`python -m`" + `, in
  the working directory) and in those of PYTHONPATH, %[6]d levels deep. With more
  than %[7]d files and directories beside the script, the trial is always run; of
  PYTHONPATH, the modules that stand directly in its directories then count;
- the libraries in the directories of LD_LIBRARY_PATH.

It is seen, too, when a package is installed, changed or removed for the job's
Python. On a gang of several machines the versions of the libraries and packages
count that every host has told. Other changes, such as an edit within an installed
package, are not seen. What a trial showed about MPI is remembered with it, so that
the gang starts in the same way. A trial that had anything to say is not remembered.
`
