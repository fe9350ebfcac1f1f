package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const processHint = "lower the number of threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS) and of workers, or raise the limit: ulimit -u, the cgroup's pids.max, kernel.threads-max"

// aboutWorkdir matches the reason why a rank could not be started because its working directory
// cannot be entered. It ends like the kernel's message for a missing program.
var aboutWorkdir = textmatch.New(`(?i)^(?:the working directory "|chdir /)`)

var launchError = []Rule{{
	Category: job.LaunchError, Signature: "workdir", Confidence: 1,
	Meaning: "the job's working directory cannot be entered on the host",
	Hint:    "make it on ${host|every host}, where its user may enter it, or name another with --workdir",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"chdir /", "working directory \""},
	Match:   aboutWorkdir, Find: textmatch.New(`directory "(?P<artefact>[^"]+)"|chdir (?P<artefact>/[^\s":]+)`),
}, {
	Category: job.LaunchError, Signature: "program-missing", Confidence: 1,
	Meaning: "the program, or its interpreter, does not exist",
	Hint:    "check the first word of the job's command on that host, and its PATH there; a script's #! line must name an existing interpreter",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"no such file or directory", "not found in $path", "executable file not found", "not found", "\" is not in path:"},
	Unless:  aboutWorkdir,
	Find:    textmatch.New(`"(?P<artefact>[^"]+)"|(?P<artefact>/[^\s:]+)`),
}, {
	Category: job.LaunchError, Signature: "exec-format", Confidence: 1,
	Meaning: "the kernel cannot execute the file: a program for another kind of machine, or a script without a #! line",
	Hint:    "build the program for the host's machine, or put #!/bin/sh into the script's first line",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"exec format error"},
	Find:    textmatch.New(`"(?P<artefact>[^"]+)"|(?P<artefact>/[^\s:]+)`),
}, {
	Category: job.LaunchError, Signature: "exec-format", Confidence: 0.9,
	Hint:    "build the program for the host's machine, or put #!/bin/sh into the script's first line",
	Needles: []string{"exec format error", "cannot execute binary file"},
	Find:    textmatch.New(`(?P<artefact>\S+): (?:cannot execute binary file|Exec format error)`),
}, {
	Category: job.LaunchError, Signature: "unstarted", Confidence: 0.9,
	Meaning: "the rank could not be started for another reason",
	Hint:    "the host gave this reason; gangrun preflight checks what a host lacks",
	Text:    "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.95,
	Meaning: "a program that the job's script calls is not installed",
	Hint:    "install ${artefact|it} on every host, or set PATH: ranks do not read .bashrc",
	Needles: []string{": command not found", ": not found"},
	Match:   textmatch.New(`: (?P<artefact>[^\s:]+): command not found|^\S+: \d+: (?P<artefact>[^\s:]+): not found`),
	Unless:  textmatch.New(`(?:orted|prted): command not found`),
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.8,
	Hint: "install what the job's script calls on every host, or set PATH: ranks do not read .bashrc",
	Text: "ended with code 127, as a shell does when a command does not exist", Ends: Ends{Codes: []int{127}},
}, {
	Category: job.LaunchError, Signature: "mpirun-launch", Confidence: 0.9,
	Meaning: "mpirun or srun could not start the program",
	Hint:    "check the program's path on every host of the job",
	Needles: []string{"unable to launch the specified application", "execvp error on file", "launch failed", "could not access or execute an executable", "execve(): "},
	Match:   textmatch.New(`execvp error on file (?P<artefact>\S+)|execve\(\): (?P<artefact>[^:]+)|unable to launch|launch failed|could not access`),
}, {
	Category: job.LaunchError, Signature: "mpirun-slots", Confidence: 0.95,
	Meaning: "mpirun has fewer slots than ranks",
	Hint:    "give it hosts with more slots, or fewer ranks; gangrun itself oversubscribes where the slots are not stated",
	Needles: []string{"not enough slots available"},
}, {
	Category: job.LaunchError, Signature: "container", Confidence: 0.9,
	Meaning: "the container could not be created, or its image could not be fetched",
	Hint:    "check the image's name and that every host can pull it or has it",
	Needles: []string{"oci runtime create failed", "failed to pull image", "manifest unknown", "unable to find image '", "error response from daemon", "fatal:   could not open image"},
	Find:    textmatch.New(`image '(?P<artefact>[^']+)'`),
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 0.9,
	Meaning: "a process or thread could not be started: a limit on their number is reached",
	Hint:    processHint,
	Needles: []string{"can't start new thread", "thread creation failed", "pthread_create failed", "unable to create native thread", "unable to create new native thread",
		"failed to create new os thread", "failed to spawn thread", "allocate necessary resources for omp thread"},
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 0.9,
	Hint:    processHint,
	Needles: []string{"resource temporarily unavailable"},
	Match:   textmatch.New(`(?i)(?:\b(?:v?fork|clone|spawn|exec)\b|fork/exec|pthread_create|\bthreads?\b|OMP: System error).*resource temporarily unavailable|^std::system_error: resource temporarily unavailable`),
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 0.9,
	Hint:    processHint,
	Classes: []string{"BlockingIOError", "OSError"},
	Needles: []string{"resource temporarily unavailable"},
	Context: textmatch.New(`(?i)fork|popen|_execute_child|start_new_thread|spawn`),
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 1,
	Hint: processHint,
	Text: "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"resource temporarily unavailable"},
}}
