package preflight

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gangrun/gangrun/preflight/compare"
	"github.com/gangrun/gangrun/preflight/memory"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// Document writes docs/preflight.md. It generates the page from the declarations of the
// checks.
func Document(w io.Writer) error {
	var b strings.Builder
	part := func(k job.SpeedKind) string {
		warn, _ := compare.Limits(k)
		return fmt.Sprintf("1/%.0f", 1/warn)
	}
	_, note := compare.Limits(job.SpeedMatmul)
	fmt.Fprintf(&b, introduction, job.HealthLimit/time.Second, part(job.SpeedCPU), part(job.SpeedMemory), part(job.SpeedLog),
		part(job.SpeedMatmul), fmt.Sprintf("%.0f/4", 4*note), part(job.SpeedLink), part(job.SpeedTrips), compare.SlowTrip.Microseconds())
	for _, c := range checks {
		fmt.Fprintf(&b, "\n### %s\n\n%s", c.Code, c.Asks)
		if len(c.DependsOn) > 0 {
			fmt.Fprintf(&b, " Skipped if `%s` failed.", strings.Join(c.DependsOn, "` or `"))
		}
		b.WriteString("\n\n| signature | severity | category | text | hint |\n|---|---|---|---|---|\n")
		for _, p := range c.Problems {
			category := "-"
			if p.Category != "" {
				category = "`" + string(p.Category) + "`"
			} else if p.Severity == job.SeverityError {
				category = "the failure's"
			}
			of := "the hint of the failure"
			if strings.Contains(p.Text, "{error}") {
				of = "the hint for this error, if there is one"
			}
			hint := strings.TrimSuffix(strings.Replace(p.Hint, "{hint}", of+"; ", 1), "; ")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Signature, p.Severity, category, p.Text, hint)
		}
	}
	fmt.Fprintf(&b, trialDocument, time.Duration(job.DefaultTrialTime), job.DefaultTrialSteps,
		text.Span(StartLimit), mayPass(), memory.Lifetime/time.Minute, memory.SourceDepth, memory.SourceEntries,
		job.KeptStdin>>20, "`"+strings.Join(services, "`, `")+"`", placeLimit, mostTried,
		lasting(), memory.ReadFile>>20, memory.ReadTotal>>20)
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

// lasting lists the categories of Lasting for a sentence.
func lasting() string {
	var list []string
	for _, c := range Lasting() {
		list = append(list, "`"+string(c)+"`")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

const introduction = `# Preflight

Before gangrun starts a gang, it looks for errors that would make the job fail. It first
runs static checks on every host. Then it runs a trial: the job's own command on one rank. ` + "`--preflight static`" + ` omits the trial, and ` + "`--preflight off`" + ` omits both.
` + "`gangrun preflight`" + ` does only the preflight.

After an error, gangrun does not start the gang; after a warning, it does. An error in the
job's inputs and paths ends the run with exit code 65; an error in its program, libraries or
environment ends it with 78 (see [exit-codes.md](exit-codes.md)). If several hosts have the same finding, gangrun
reports it once, with the names of the hosts. Some checks depend on others: if a check fails on a host, gangrun
skips the checks that depend on it on this host. So a missing program is one finding and not five.

The hosts of a gang on several machines also test their connections, all at once. Each
host opens a port on the network that the ranks will use, connects to every other host and
exchanges a secret with it. Each host also writes a file into the checkpoint directory and
looks for the files of the other hosts. All of this takes at most 5 s, for any number of hosts. If hosts differ, gangrun prints
a matrix: a line for each host that differs, one for all others, and a ` + "`!`" + ` after
each difference. ` + "`--verbose`" + ` prints the whole matrix, with the times between all hosts;
` + "`-o json`" + ` has it as ` + "`matrix{columns[], rows[]{host, cells[]{text, odd}, reach[]{to, address, time, error}}}`" + `,
times in nanoseconds.

## Measurements

With ` + "`--health quick`" + `, or ` + "`health: quick`" + ` in the job file, the hosts also measure how fast they
are. They do so after the static checks, if these found no error. The measurements take some seconds, and at most %[1]d s.
If something is far slower than its peers, the check ` + "`health`" + ` reports that; the gang starts nevertheless.
` + "`gangrun preflight --health quick`" + ` measures without starting a gang.

| what | how | slow if below this part of the median |
|---|---|---|
| CPU (` + "`cpu`" + `) | how many turns of a loop with integers and floating point numbers a core makes in a second of CPU time, on up to 8 cores of each host | %[2]s |
| memory (` + "`memory`" + `) | how many bytes one core of each NUMA node copies in a second of CPU time | %[3]s |
| disk of the checkpoint directory and of the logs (` + "`checkpoint-disk`" + `, ` + "`log-disk`" + `) | how many bytes a second the host writes and syncs, in files of 256 KiB to 8 MiB and of at most a twentieth of the free space; it then removes the files | %[4]s |
| GPUs (` + "`gpu-matmul`" + `, ` + "`gpu-copy`" + `, ` + "`gpu-upload`" + `) | how fast a GPU multiplies matrices of 4096 x 4096 float16, copies 64 MiB within its memory, and copies 64 MiB from pinned memory of the host | %[5]s; below %[6]s a note |
| network (` + "`link`" + `) | how many bytes a second go over one TCP connection, on the network that the ranks will use, in each direction | %[7]s |
| network (` + "`round-trips`" + `) | how many round trips a second are possible: 1 s divided by the shortest of up to 200 round trips of one byte | %[8]s, and a round trip takes at least %[9]d µs longer than the median |

All hosts measure at the same time. They measure the links between them in rounds: in each round, a host
talks to only one other host. There are at most 6 rounds, so with 7 hosts or more not all links are measured. If something is slow,
the hosts measure it again, up to twice, and the best value counts. On simulated hosts, one measurement stands for all of them, because they are one machine.

gangrun compares a speed with the median of all speeds of its kind: that of a GPU with those of GPUs of the same model,
that of a disk with those of disks with the same type of file system. A speed counts as slow only if it is also an outlier:
if it is more than 4 standard deviations below the median. (The standard deviation is that of the logarithms
of the speeds, estimated from their median absolute deviation.) If all links of a host are slow in one
direction, the finding names that host. If only the link between two hosts is slow, the finding names both.
If half of the hosts or more are slow, for instance one of two, the finding shows the difference and
does not say which hosts are wrong.

One TCP connection cannot use the whole speed of a fast network, and the figures are not those of a
benchmark: their only purpose is to find hosts that differ from the others.

If ranks get GPUs, a Python program that uses torch measures the GPUs of all hosts. The program runs with the
interpreter of the job, or with python3 if the job is not Python or has an image. It skips GPUs on which nvidia-smi
shows a process. It was tested with a stand-in for torch, and has not run on a GPU yet.

` + "`-o json`" + ` has all measurements as ` + "`speeds[]{host, kind, of, model, value, error}`" + `. The kinds are those in
brackets above, and the value is in turns, bytes, floating point operations or round trips a second. ` + "`of`" + ` is
the core, the NUMA node, the directory, the GPU or the other host; a link is listed at the host that sends. ` + "`--verbose`" + ` prints a table.

## Checks

The names of checks and signatures do not change. ` + "`{path}`" + ` and the like in the
texts stand for values that the check has found. One more warning, ` + "`checkpoint-dir-in-use`" + `, does not come
from a check: see [checkpoints.md](checkpoints.md).
`

const trialDocument = `
## The trial

The trial runs the job's command unchanged, as one rank on one host. ` + "`" + `trial.args` + "`" + ` adds
arguments to the end of the command; ` + "`" + `trial.command` + "`" + ` replaces the command; the variables of ` + "`" + `trial.env` + "`" + `
take precedence over the job's environment. The trial does not resume from a checkpoint. Its standard input is that of
the job. The gang gets the same input again: a file is read from its beginning, and of a pipe gangrun
keeps up to %[8]d MiB.

The trial passes, and gangrun ends it, as soon as one of these holds:

- every rank has ended with exit code 0;
- the ranks have printed ` + "`" + `trial.steps` + "`" + ` lines of progress (%[2]d); a step that several
  ranks print counts once;
- the trial has run for ` + "`" + `trial.time` + "`" + ` (%[1]s). A trial that hangs, and does not end, therefore passes.
  Later, gangrun finds out if the gang hangs ([hangs.md](hangs.md)).

` + "`" + `--trial off` + "`" + ` omits the trial. If the gang has only one rank, there is no trial either, because the
trial would do the same as the gang. ` + "`" + `gangrun preflight` + "`" + ` tries such a job nevertheless.

### What the trial writes is discarded

A trial is contained. Its ranks, and mpirun with its daemons, see the files of the host. Their
changes to files go into a layer in memory, which is discarded when the ranks have ended
(overlayfs in a mount namespace, and in a user namespace if gangrun is not root). That holds
for all file systems: the working directory, the home, ` + "`" + `/tmp` + "`" + `, ` + "`" + `/dev/shm` + "`" + `, NFS and others.
The job's checkpoint directory is empty in the trial. If the program or its inputs are in it,
` + "`" + `GANGRUN_CHECKPOINT_DIR` + "`" + ` is another directory instead. So the gang never finds files of the
trial. Only the logs of the ranks are kept.

These things differ from the gang:

- The layer may use a quarter of the free memory of the host or of its control group.
  A trial that fills it has no result (` + "`" + `trial-full` + "`" + `).
- The trial cannot reach the sockets of services on the host, except those in ` + "`" + `/run` + "`" + ` (name
  services, for instance) and those of NVIDIA's MPS. It can reach services on the network. gangrun
  switches some of these services off by variables, unless you have set the variables yourself: %[9]s.
- Ranks do not see what ranks on another host write.
- If gangrun is not root, the trial can change only files whose owner is the user and whose
  group is the user's main group. It cannot change other files, even if the user may write to them. setuid programs
  run without the rights of their owner. If files of the job belong to other users, this may be why a trial fails. gangrun then
  repeats the trial on more ranks, if that is [possible](#what-a-failure-means). If it still fails, gangrun only warns.
  But the gang does not start if an import, a library or the program is missing, the program cannot be parsed, permission is
  denied (EACCES), or the driver is too old. Before Linux 6.6, a directory that the trial has removed cannot be made again in the trial.
- Files are on an overlay: after the first write to a file, its other hard links and the memory
  mappings (mmap) made before that write still have the old contents; O_DIRECT and ioctls of a
  file system may be refused.
- These differences can cause the errors ` + "`" + `EPERM` + "`" + `, ` + "`" + `EROFS` + "`" + `, ` + "`" + `EXDEV` + "`" + `, ` + "`" + `EBUSY` + "`" + `, ` + "`" + `EOVERFLOW` + "`" + `
  and ` + "`" + `ESTALE` + "`" + `. If a trial fails with one of these errors, gangrun only warns (` + "`" + `trial-contained` + "`" + `).

Some hosts cannot contain a trial. The reason may be one of these:

- Linux is older than 5.12.
- User namespaces are switched off (` + "`" + `sysctl user.max_user_namespaces` + "`" + `,
  ` + "`" + `kernel.unprivileged_userns_clone` + "`" + `, ` + "`" + `kernel.apparmor_restrict_unprivileged_userns` + "`" + `).
- gangrun runs in a container that may not make user namespaces.
- Overlays are not possible on a file system of the job.

In these cases there is no trial, and a warning says why. ` + "`" + `--trial uncontained` + "`" + ` runs the trial nevertheless, on the
job's own files, but with a separate, empty checkpoint directory. Before and after such a trial, gangrun looks at up to
20000 files: those in the working directory, in the checkpoint directory and in the directories that the command
names (except ` + "`inputs:`" + `). If some files have changed, it does not start the gang, and the error names these files.

### What a failure means

A trial may fail just because it has too few ranks. gangrun therefore repeats
a failed trial on two ranks, and then on all ranks if they are at most %[11]d, fit on one host and get a place
within %[10]s. ` + "`" + `trial: {ranks: N}` + "`" + `, or ` + "`" + `--trial-ranks N` + "`" + `, begins with N ranks instead of one.
gangrun does not start the gang

- if more ranks cannot help: an import, a library, the program or an
  input file is missing, the program cannot be parsed, permission is denied (EACCES), or the
  driver is too old;
- if the trial failed on as many ranks as the gang has, unless the cause may be gone at the next
  start (see the next list), or the failure may come from the containment (` + "`" + `trial-contained` + "`" + `).

In all other cases gangrun warns, and starts the gang:

- The trial failed on fewer ranks than the gang has (` + "`" + `trial-few-ranks` + "`" + `), or the program itself
  says that they are too few (` + "`" + `trial-world-size` + "`" + `). Set how the job can be tried, as in
  ` + "`" + `trial: {ranks: 4}` + "`" + ` or ` + "`" + `trial: {args: [--tiny]}` + "`" + `.
- The trial had fewer ranks than the gang, and too little memory (` + "`" + `cpu-oom` + "`" + `, ` + "`" + `gpu-oom` + "`" + `).
- The cause may be gone at the next start, whatever the number of ranks. gangrun first repeats the trial once, unless
  ` + "`" + `retries` + "`" + ` is 0. These causes are %[4]s. (In a trial, the cause is ` + "`" + `hang` + "`" + ` only if the program itself,
  or a program that supervises it, reports a hang and ends.)
- The trial waits for standard input, which is a terminal or an empty pipe.
- The ranks of the trial have not started within %[3]s.

### What is remembered

gangrun remembers a good trial for %[5]d minutes, and does not repeat it for the same job
on the same hosts. The job is the same if these have not changed: the program and the script
(by SHA-256), the command, the trial settings, the working directory, the checkpoint directory,
and the sizes of the inputs. gangrun also compares all variables of the ranks' environment: those of the job, and
those of the shell in which gangrun was started, such as PATH, PYTHONPATH,
LD_LIBRARY_PATH, CONDA_PREFIX and those that environment modules set. It stores only a hash of their
values. It does not compare variables that differ from one shell, terminal, login or batch
job to the next and change nothing for the program, such as SHLVL, TERM, SSH_TTY
and SLURM_JOB_ID.

It compares the size and time of these files, on the machine where gangrun was started:

- files that the arguments of the command name;
- the Python modules (.py and .so) in the script's directory (with ` + "`python -m`" + `, in
  the working directory) and in those of PYTHONPATH, %[6]d levels deep. If the script's
  directory has more than %[7]d files and directories, the trial is always run; if those of
  PYTHONPATH have more, only the modules directly in them are compared;
- the libraries in the directories of LD_LIBRARY_PATH.

It also compares the packages of the job's Python and, on several machines, the versions
of libraries and packages on each host. gangrun does not notice other changes, such as an edit in
an installed package. It remembers which MPI library the trial used, so that the gang starts in
the same way. It does not remember a trial with a warning.

### What failed before

gangrun also keeps how runs ended, and why (` + "`gangrun history`" + `). If the newest run of the same
job failed for %[12]s, and nothing has changed since, the check
` + "`known-failure`" + ` warns, and the job starts nevertheless. With ` + "`--refuse-known`" + `, or
` + "`refuse-known: true`" + ` in the job file, the job does not start, and the exit code is 65.

The job has changed if one of these has:

- the command, the number of ranks, the job's environment, the image;
- the content of the program, of the files that the command names, and of the Python modules
  that gangrun compares for a trial. gangrun reads at most %[14]d MiB of them in all. Of a file of more than %[13]d MiB,
  and of files that exceed the %[14]d MiB, only the size and time count;
- the size or time of ` + "`inputs:`" + `, of the file that the failure was about, and, with
  ` + "`--resume`" + `, of the entries of the checkpoint directory;
- the variables of the shell that gangrun compares for a trial, except those of batch systems;
- the installed packages.

A job on other hosts counts as the same job. When a later run of the job has succeeded, gangrun no longer warns. gangrun does
not know whether a job has changed if the job has ` + "`--preflight off`" + `, if it reads a pipe, or if the script's directory has
too many files.
`
