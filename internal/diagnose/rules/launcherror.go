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
	Needles: []string{"not enough slots available", "processes than cpus on a resource", "more processes than there are", "your job will now abort: not enough"},
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
	Unless:  textmatch.New(`(?i)unable to lock|lock file|flock|fcntl`),
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 1,
	Hint: processHint,
	Text: "could not be started: ${title}", Ends: Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"resource temporarily unavailable"},
}, {
	Category: job.LaunchError, Signature: "nccl-duplicate-gpu", Confidence: 0.95,
	Meaning: "two ranks use one GPU, which NCCL refuses",
	Hint:    "call torch.cuda.set_device(LOCAL_RANK modulo the GPUs seen) before init_process_group, or run with --gpu-visibility rank, and do not overwrite CUDA_VISIBLE_DEVICES",
	Needles: []string{"duplicate gpu detected", "multiple ranks are using the same gpu"},
}, {
	Category: job.LaunchError, Signature: "open-files-limit", Confidence: 0.9,
	Meaning: "the process may open no more files",
	Hint:    "raise the limit (ulimit -n), close files, or call torch.multiprocessing.set_sharing_strategy(\"file_system\")",
	Classes: []string{"*"},
	Needles: []string{"too many open files", "received 0 items of ancdata"},
}, {
	Category: job.LaunchError, Signature: "interpreter-missing", Confidence: 0.9,
	Meaning: "the interpreter that the first line of a script names does not exist, or the line ends in CR LF",
	Hint:    "correct the first line of the script; convert it with dos2unix if it was edited on Windows",
	Needles: []string{"bad interpreter", "cannot execute: required file not found", "/usr/bin/env: "},
	Match:   textmatch.New(`: (?P<artefact>\S+): bad interpreter|(?P<artefact>\S+): cannot execute: required file not found|/env: (?P<artefact>.+): No such file or directory`),
}, {
	Category: job.LaunchError, Signature: "script-variable", Confidence: 0.85,
	Meaning: "a shell script uses a variable that is not set",
	Hint:    "set ${artefact|the variable} before the script uses it, or correct its name",
	Needles: []string{"unbound variable", "parameter not set", "parameter null or not set"},
	Match:   textmatch.New(`(?P<artefact>\w+): (?:unbound variable|parameter (?:null or )?not set)`),
}, {
	Category: job.LaunchError, Signature: "batch-refused", Confidence: 0.9,
	Meaning: "the batch system refused the job or the step",
	Hint:    "correct the options of the job: partition, account, constraints, sizes; sinfo, sacctmgr or qstat -q show what exists",
	Needles: []string{"sbatch: error", "srun: error: unable to", "unable to create step", "batch job submission failed", "job credential", "invalid account", "invalid partition", "invalid qos", "more processors requested", "requested node configuration", "unable to allocate resources", "qsub: ", "bsub: ", "couldn't chdir to", "task launch for", "prolog", "unable to satisfy", "could not open stdout", "can't chdir to", "io setup failed", "did not start within",
		"credential revoked", "unable to run job", "srun: fatal", "invalid job id", "reqnodenotavail"},
	Match: textmatch.New(`^(?:sbatch|salloc|srun): (?:error|fatal): (?:[Uu]nable to (?:allocate|create|confirm)|Batch job submission failed|[Ii]nvalid|Requested|More processors|Task launch)|Unable to create step|Batch job submission failed|[Jj]ob credential (?:revoked|expired)|[Ii]nvalid (?:account|partition|qos)\b|More processors requested than permitted|[Rr]equested node configuration is not available|` +
		`^(?:qsub|bsub|qrsh)\S*: .*(?:error|invalid|unknown|not|illegal|denied|rejected|would exceed)|(?:couldn't|can't) chdir to|error: _fork_all_tasks: IO setup failed|did not start within|[Tt]ask launch for \S+ failed|[Pp]rolog (?:\w+ )?(?:failed|error|exited)|[Uu]nable to run job|[Jj]ob requirements? (?:can not|cannot|can't|never) be (?:met|satisfied)`),
	Unless: textmatch.New(`slurmd_user|node failure`),
}, {
	Category: job.LaunchError, Signature: "pod-not-started", Confidence: 0.9, Traits: Verdict,
	Meaning: "Kubernetes or a container engine cannot start the container",
	Hint:    "look at the events of the pod (kubectl describe pod): the name of the image, its credentials, the command, the volumes",
	Needles: []string{"imagepullbackoff", "errimagepull", "createcontainerconfigerror", "createcontainererror", "runcontainererror", "invalidimagename", "failedscheduling", "failedmount", "containercannotrun", "failed to create containerd task", "oci runtime", "failed to create shim", "no such image", "pull access denied", "manifest for", "unschedulable", "back-off pulling", "failed to start container", "failed to resolve reference", "failed to pull", "cannot connect to the docker daemon", "error: secret", "configmap", "couldn't find key"},
	Match:   textmatch.New(`ImagePullBackOff|ErrImagePull|CreateContainer(?:Config)?Error|RunContainerError|InvalidImageName|ContainerCannotRun|FailedScheduling|FailedMount\b|failed to create (?:containerd )?(?:task|shim)|OCI runtime (?:create|exec) failed|OCI runtime error|[Nn]o such image|pull access denied|manifest for .* not found|Back-off pulling image|[Ff]ailed to pull image|failed to resolve reference|Cannot connect to the Docker daemon|(?:secret|configmap) "[^"]+" not found|couldn't find key`),
}, {
	Category: job.LaunchError, Signature: "container-runtime", Confidence: 0.85,
	Meaning: "Apptainer, Singularity or Enroot cannot start the container",
	Hint:    "read the message: the image, the bind mounts and the site's configuration are what it names",
	Needles: []string{"fatal:  ", "fatal:   ", "enroot", "pyxis: ", "singularity", "apptainer"},
	Match:   textmatch.New(`^(?:\S*\s*)?FATAL: {2,}\S|pyxis: .*(?:failed|couldn't|error)|\[ERROR\].*(?:enroot|container|image)|enroot-\w+: .*(?:fail|error|No such)`),
}, {
	Category: job.LaunchError, Signature: "environment-missing", Confidence: 0.7, Traits: Weak,
	Meaning: "the script cannot set up its environment: a module, a conda or virtual environment, a licence",
	Hint:    "see what exists on the host of the job: module avail, conda env list",
	Needles: []string{"unable to locate a modulefile", "the following module(s) are unknown", "lmod has detected", "could not find conda environment", "environmentlocationnotfound", "environmentnamenotfound", "commandnotfounderror", "module: command not found", "no license", "license checkout failed", "licence", "license server", "license error", "flexnet", "flexlm", "no such feature exists"},
	Match:   textmatch.New(`(?i)unable to locate a modulefile|module\(s\) are unknown|Lmod has detected the following error|could not find conda environment|Environment(?:Location|Name)NotFound|CommandNotFoundError|module: command not found|licen[sc]e (?:checkout failed|server|error|manager|file)|licensed number of users|no such feature exists|FlexN?e?t?LM|cannot (?:connect to|find) licen[sc]e|licen[sc]e.{0,40}(?:not available|expired|denied|could not|unable|failed)`),
}, {
	Category: job.LaunchError, Signature: "build-failed", Confidence: 0.85,
	Meaning: "make or another build tool stopped in the job's script",
	Hint:    "build the program before the job, or correct what the tool names",
	Needles: []string{"no rule to make target", "no targets specified and no makefile found", "*** missing separator", "could not find a package configuration file", "cmake error"},
	Match:   textmatch.New(`No rule to make target [\'"]?(?P<artefact>[^\'"]+)|No targets specified and no makefile found|\*\*\* missing separator|CMake Error`),
}}
