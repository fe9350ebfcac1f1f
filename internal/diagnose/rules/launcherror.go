package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const processHint = "lower the number of threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS) and of workers, or raise the limit: ulimit -u, the cgroup's pids.max, kernel.threads-max"

// aboutWorkdir matches the reason of a rank that could not enter its working directory. The end of the reason is like
// that of the kernel's message for a missing program.
var aboutWorkdir = textmatch.New(`(?i)^(?:the working directory "|chdir /)`)

// noEnvironment matches messages of tools that set up an environment, and of licence managers.
var noEnvironment = textmatch.New(`(?i)unable to locate a modulefile|module\(s\) are unknown|Lmod has detected the following error|could not find conda environment|Environment(?:Location|Name)NotFound|CommandNotFoundError|module: command not found|licen[sc]e (?:checkout failed|error|manager error|(?:server|manager|file)\b.{0,40}(?:\bdown\b|not|unreachable|error|fail|missing|cannot|invalid|expired|refused|timed out))|licensed number of users|no such feature exists|FlexN?e?t?LM|cannot (?:connect to|find) licen[sc]e|Run 'conda init' before|given prefix does not exist|matches no installed packages|[Nn]o virtual environment found|is not installed \(set by|(?:could not|unable to|failed to) (?:obtain|checkout|acquire|get) (?:an? )?licen[sc]e|size-limited licen[sc]e|licen[sc]e.{0,40}(?:not available|expired|denied|could not|unable|failed)`)

var launchError = []rule.Rule{{
	Category: job.LaunchError, Signature: "workdir", Confidence: 1,
	Meaning: "the job's working directory cannot be entered on the host",
	Hint:    "make it on ${host|every host}, where its user may enter it, or name another with --workdir",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"chdir /", "working directory \""},
	Match:   aboutWorkdir, Find: textmatch.New(`directory "(?P<artefact>[^"]+)"|chdir (?P<artefact>/[^\s":]+)`),
}, {
	Category: job.LaunchError, Signature: "program-missing", Confidence: 1,
	Meaning: "the program, or its interpreter, does not exist",
	Hint:    "check the first word of the job's command on that host, and its PATH there; a script's #! line must name an existing interpreter",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"no such file or directory", "not found in $path", "executable file not found", "not found", "\" is not in path:"},
	Unless:  aboutWorkdir,
	Find:    textmatch.New(`"(?P<artefact>[^"]+)"|(?P<artefact>/[^\s:]+)`),
}, {
	Category: job.LaunchError, Signature: "exec-format", Confidence: 1,
	Meaning: "the kernel cannot execute the file: a program for another kind of machine, or a script without a #! line",
	Hint:    "build the program for the host's machine, or put #!/bin/sh into the script's first line",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
	Needles: []string{"exec format error"},
	Find:    textmatch.New(`"(?P<artefact>[^"]+)"|(?P<artefact>/[^\s:]+)`),
}, {
	Category: job.LaunchError, Signature: "exec-format", Confidence: 0.9,
	Hint:    "build the program for the host's machine, or put #!/bin/sh into the script's first line",
	Needles: []string{"exec format error", "cannot execute binary file", ": syntax error: ", "\x7felf"},
	Match:   textmatch.New(`(?i:exec format error|cannot execute binary file)|^\S+\.(?:bin|exe|x|out|so): \d+: Syntax error|: \x7fELF`),
	Find:    textmatch.New(`(?P<artefact>\S+): (?:cannot execute binary file|Exec format error|\d+: )`),
}, {
	Category: job.LaunchError, Signature: "unstarted", Confidence: 0.9,
	Meaning: "the rank could not be started for another reason",
	Hint:    "the host gave this reason; gangrun preflight checks what a host lacks",
	Text:    "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.95,
	Meaning: "a program that the job's script calls is not installed",
	Hint:    "install ${artefact|it} on every host, or set PATH: ranks do not read .bashrc",
	Needles: []string{": command not found", ": not found", "zsh: command not found", "unknown command", "failed to run command", "failed to execute ", "execution of `", "cannot run ", "executable file not found in", "can't exec \"", "error: spawn ", "not found [no such file", ": no such file or directory"},
	Match: textmatch.New(`: (?P<artefact>[^\s:]+): command not found|^\S+: (?:line )?\d+: (?P<artefact>[^\s:]+): not found|^(?P<artefact>[^\s:]+): Command not found\.?$|^make(?:\[\d+\])?: (?P<artefact>[^\s:]+): Command not found|command not found: (?P<artefact>\S+)|^fish: Unknown command:? '?(?P<artefact>[^\s']+)|^\S*sh: (?P<artefact>[^\s:]+): not found|` +
		`^\w+: failed to (?:run command|execute) \W?(?P<artefact>[\w./+-]+)\W?: No such file|^numactl: execution of .(?P<artefact>[\w./+-]+)': No such file|^time: cannot run (?P<artefact>[^\s:]+): No such file|exec: "(?P<artefact>[^"]+)": executable file not found in|Can't exec "(?P<artefact>[^"]+)": No such file|Error: spawn (?P<artefact>\S+) ENOENT|^(?:\S*/)?(?:ba|da|k|z)?sh: (?:line \d+: |\d+: )?(?P<artefact>\.{0,2}/[^\s:]+): No such file or directory$|: line \d+: (?P<artefact>\.{0,2}/(?:[^\s:]*/)?[\w-]+(?:\.(?:x|exe|out|sh|py|bin))?): No such file or directory$`),
	Unless: textmatch.New(`(?:module|ml|conda|nvidia-smi|spack|ibstat|sinfo|squeue|sacct|lspci|numactl|hwloc-ls|git|tput|dos2unix|bc|xterm|lscpu|free): (?:command )?not found|(?:orted|prted): command not found|OCI runtime|crun|runc|containerd|(?i)warn`),
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.8,
	Hint: "install what the job's script calls on every host, or set PATH: ranks do not read .bashrc",
	Text: "ended with code 127, as a shell does when a command does not exist", Ends: rule.Ends{Codes: []int{127}},
}, {
	Category: job.LaunchError, Signature: "mpirun-launch", Confidence: 0.9,
	Meaning: "mpirun or srun could not start the program",
	Hint:    "check the program's path on every host of the job",
	Needles: []string{"unable to launch the specified application", "execvp error on file", "launch failed", "could not access or execute an executable", "execve(): ", "unable to find the specified executable", "unable to start the specified application", "unable to find the requested executable", "specified executable could not be", "failed to exec its actual executable", "no executable provided", "no executable was specified", "attempt to run as root", "unable to open the hostfile", "unable to open host file", "not present in the allocation", "unrecognized argument", "aprun: file ", "aprun: exec ", "flux-shell", "initializing rm connection", "invalid mpi type", "specified plugin name for mpi/", "cannot find mpi plugin", "munge encode failed", "munge decode failed", "prterun executable could not", "cannot create resource sets", "per rs: ", "support recursive calls", "start failed: "},
	Match: textmatch.New(`execvp error on file (?P<artefact>\S+)|execve\(\): (?P<artefact>[^:]+)|unable to launch|launch failed|could not access|unable to find the (?:specified|requested) executable|unable to start the specified application|specified executable could not be (?:found|executed)|failed to exec its actual executable|[Nn]o executable (?:provided|was specified)|attempt to run as root|unable to open (?:the hostfile|host file)|not present in the allocation|match_arg.*unrecognized argument|` +
		`^aprun: (?:file (?P<artefact>\S+) not found|[Ee]xec (?P<artefact>\S+) failed)|flux-shell\[\d+\]: (?:FATAL: (?:[^d]|d[^o])|stderr.*FATAL)|Error initializing RM connection|Invalid MPI type|specified plugin name for mpi/|[Cc]annot find mpi plugin|[Mm]unge (?:en|de)code failed|prterun executable could not|cannot create resource sets|asks for \w+ per RS: \d|mpi(?:run|exec) does not support recursive calls|\btask \d+ .*start failed: (?P<artefact>[^\s:]+)`),
	Unless: textmatch.New(`(?i)\bkernel\b|cuda|\bhip|\bgpu\b|\bgrid\b|rocket|browser`),
}, {
	Category: job.LaunchError, Signature: "mpirun-slots", Confidence: 0.95,
	Meaning: "mpirun has fewer slots than ranks",
	Hint:    "give it hosts with more slots, or fewer ranks; gangrun itself oversubscribes where the slots are not stated",
	Needles: []string{"not enough slots available", "processes than cpus on a resource", "more processes than there are", "your job will now abort: not enough", "no allocated resources for the application", "allocated for this job are already filled", "more cpus per process", "ppr for this topology", "claim exceeds reservation", "too many processes per node", "requested more processes than"},
}, {
	Category: job.LaunchError, Signature: "container", Confidence: 0.9,
	Meaning: "the container could not be created, or its image could not be fetched",
	Hint:    "check the image's name and that every host can pull it or has it",
	Needles: []string{"oci runtime create failed", "failed to pull image", "manifest unknown", "unable to find image '", "error response from daemon", "fatal:   could not open image", "unable to start container process", "short-name resolution enforced", "did not resolve to an alias", "initializing source docker://", "nvidia-container-cli: ", "could not select device driver", "error: crun: ", "error: runc: "},
	Unless:  textmatch.New(`(?i)no such container|is not running|port is already allocated|removal of container|cannot kill container|nvidia-container-cli: (?:warn|info)`),
	Find:    textmatch.New(`image '(?P<artefact>[^']+)'`),
}, {
	Category: job.LaunchError, Signature: "process-limit", Confidence: 0.9,
	Meaning: "a process or thread could not be started: a limit on their number is reached",
	Hint:    processHint,
	Needles: []string{"too many memory regions", "rejected by pids controller", "fork: retry: no child processes", "spawn eagain", "max user processes exceeded", "can't start new thread", "thread creation failed", "pthread_create failed", "unable to create native thread", "unable to create new native thread", "failed to create new os thread", "failed to spawn thread", "allocate necessary resources for omp thread"},
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
	Text: "could not be started: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Unstarted}},
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
	Needles: []string{"bad interpreter", "cannot execute: required file not found", "/usr/bin/env: ", "/bin/env: ", "env: can't execute", "specified the interpreter"},
	Match:   textmatch.New(`: (?P<artefact>\S+): bad interpreter|(?P<artefact>\S+): cannot execute: required file not found|\benv: (?:can't execute )?['‘"]?(?P<artefact>[^'’":]+)['’"]?: No such file or directory|specified the interpreter '?(?P<artefact>[^\s',]+)`),
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
	Needles: []string{"sbatch: error", "srun: error: unable to", "unable to create step", "batch job submission failed", "job credential", "invalid account", "invalid partition", "invalid qos", "more processors requested", "requested node configuration", "unable to allocate resources", "qsub: ", "bsub: ", "couldn't chdir to", "task launch for", "prolog", "unable to satisfy", "can't chdir to", "did not start within",
		"credential revoked", "unable to run job", "srun: fatal", "invalid job id", "reqnodenotavail", "submit/allocate failed", "job not submitted", "dependencyneversatisfied", "protocol authentication error", "task plugins: one of", "invoke spank plugin", "required plugin spank", "taskprolog failed", "task_prolog", "initializing execution environment", "error from slot", "error from starter", "starter at ", "invalid authentication credential", "security violation, slurm"},
	Match: textmatch.New(`^(?:sbatch|salloc|srun): (?:error|fatal): (?:[Uu]nable to (?:allocate|create|confirm)|Batch job submission failed|[Ii]nvalid|Requested|More processors|Task launch)|Unable to create step|Batch job submission failed|[Jj]ob credential (?:revoked|expired)|[Ii]nvalid (?:account|partition|qos)\b|More processors requested than permitted|[Rr]equested node configuration is not available|` +
		`^(?:qsub|bsub|qrsh)\S*: .*(?:error|invalid|unknown|not|illegal|denied|rejected|would exceed)|(?:couldn't|can't) chdir to|did not start within|[Tt]ask launch for \S+ failed|[Pp]rolog (?:\w+ )?(?:failed|error|exited)|[Uu]nable to run job|Job submit/allocate failed|Job not submitted\.|DependencyNeverSatisfied|Protocol authentication error|Invalid authentication credential|Security violation, slurm|[Ff]ailed to invoke (?:task|spank) plugin|required plugin spank\S+ .*failed|TaskProlog failed|task_prolog can not be executed|creating/initializing execution environment|Error from (?:slot|starter)\S*:? .*[Ff]ailed to (?:execute|open|create)|STARTER at \S+ failed to|[Jj]ob requirements? (?:can not|cannot|can't|never) be (?:met|satisfied)`),
	Unless: textmatch.New(`spank_pyxis|invoke spank plugin stack|slurmd_user|node failure|as standard (?:output|error)`),
}, {
	Category: job.LaunchError, Signature: "pod-not-started", Confidence: 0.9, Traits: rule.Verdict,
	Meaning: "Kubernetes or a container engine cannot start the container",
	Hint:    "look at the events of the pod (kubectl describe pod): the name of the image, its credentials, the command, the volumes",
	Needles: []string{"imagepullbackoff", "errimagepull", "createcontainerconfigerror", "createcontainererror", "runcontainererror", "invalidimagename", "failedscheduling", "failedmount", "containercannotrun", "failed to create containerd task", "oci runtime", "failed to create shim", "no such image", "pull access denied", "manifest for", "unschedulable", "back-off pulling", "failed to start container", "failed to resolve reference", "failed to pull", "cannot connect to the docker daemon", "error: secret", "configmap", "couldn't find key", "exceeded quota", "quotareached", "jobschedulingfailed", "admission webhook", "mountvolume", "failedcreatepodsandbox", "starterror", "no matches for kind"},
	Match:   textmatch.New(`ImagePullBackOff|ErrImagePull|CreateContainer(?:Config)?Error|RunContainerError|InvalidImageName|ContainerCannotRun|FailedScheduling|FailedMount\b|failed to create (?:containerd )?(?:task|shim)|OCI runtime (?:create|exec) failed|OCI runtime error|[Nn]o such image|pull access denied|manifest for .* not found|Back-off pulling image|[Ff]ailed to pull image|failed to resolve reference|Cannot connect to the Docker daemon|(?:secret|configmap) "[^"]+" not found|couldn't find key|is forbidden: exceeded quota|\w*QuotaReached\b|JobSchedulingFailed|admission webhook .* denied the request|MountVolume\.\w+ failed|FailedCreatePodSandBox|\bReason: +StartError|no matches for kind`),
}, {
	Category: job.LaunchError, Signature: "container-runtime", Confidence: 0.85,
	Meaning: "Apptainer, Singularity or Enroot cannot start the container",
	Hint:    "read the message: the image, the bind mounts and the site's configuration are what it names",
	Needles: []string{"fatal:  ", "fatal:   ", "enroot", "pyxis: ", "singularity", "apptainer", "ch-run", "ch-image", "ch-convert", "[error] url http", ".sqsh", "abort  : retval", "container creation failed"},
	Match:   textmatch.New(`^(?:\S*\s*)?FATAL: {2,}\S|pyxis: .*(?:failed|couldn't|error)|\[ERROR\].*(?:enroot|container|image|\.sqsh)|enroot-\w+: .*(?:fail|error|No such)|\bch-(?:run|image|convert|fromhost)(?:\[\d+\])?: (?:fatal )?error:|\[ERROR\] URL https?://|^ABORT  : Retval|container creation failed`),
	Unless:  textmatch.New(noReason.String() + `|sorry, too many clients|authentication failed|connection slots|role "|database "|no pg_hba|terminating connection|the database system|could not (?:remove|access file)`),
}, {
	Category: job.LaunchError, Signature: "environment-missing", Confidence: 0.7, Traits: rule.Weak,
	Meaning: "the script cannot set up its environment: a module, a conda or virtual environment, a licence",
	Hint:    "see what exists on the host of the job: module avail, conda env list",
	Needles: []string{"unable to locate a modulefile", "the following module(s) are unknown", "lmod has detected", "could not find conda environment", "environmentlocationnotfound", "environmentnamenotfound", "commandnotfounderror", "'conda init' before", "given prefix does not exist", "matches no installed packages", "no virtual environment found", "is not installed (set by", "license manager error", "obtain license", "license file", "failed to checkout license", "size-limited license", "error: module", "module: not found", "prefix does not exist", "module: command not found", "no license", "license checkout failed", "licence", "license server", "license error", "flexnet", "flexlm", "no such feature exists"},
	Match:   noEnvironment,
}, {
	Category: job.LaunchError, Signature: "build-failed", Confidence: 0.85,
	Meaning: "make or another build tool stopped in the job's script",
	Hint:    "build the program before the job, or correct what the tool names",
	Needles: []string{"no rule to make target", "no targets specified and no makefile found", "*** missing separator", "could not find a package configuration file", "cmake error", "ninja: build stopped", "ninja: error: ", "error building extension", "ninja is required to load", "undefined reference to", "collect2: error", "compilation terminated.", "configure: error: ", "error: could not compile", "cannot find main module", "failed building wheel for", "could not build wheels for", "failed to build installable wheels", "linker command failed"},
	Match:   textmatch.New(`No rule to make target [\'"]?(?P<artefact>[^\'"]+)|No targets specified and no makefile found|\*\*\* missing separator|CMake Error|^ninja: (?:build stopped|error: )|Error building extension [\'"]?(?P<artefact>[^\'"]+)|Ninja is required to load|undefined reference to ['\x60"‘]|^collect2: error|^compilation terminated\.|^configure: error: |error: could not compile|cannot find main module|Failed building wheel for (?P<artefact>\S+)|Could not build wheels for|[Ff]ailed to build installable wheels|linker command failed`),
	Unless:  textmatch.New(`, needed by |\(find_package\)|FindPackageHandleStandardArgs`),
}, {
	Category: job.LaunchError, Signature: "open-files-limit", Confidence: 0.85,
	Hint:    "raise the limit (ulimit -n, fs.file-max, fs.inotify.max_user_watches), or close files",
	Needles: []string{": too many open files", "too many open files in system", "too many open files (os error 24)", "file-max limit", "number of file watchers reached", "inotify watch limit reached", "inotify_add_watch", "emfile"},
	Match:   textmatch.New(`[Tt]oo many open files|file-max limit \d+ reached|file watchers reached|inotify watch limit reached|inotify_add_watch.*(?:No space|limit)|\bEMFILE\b`),
	Unless:  textmatch.New(`(?i)warn|retry|backoff`),
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.9,
	Hint:    "install ${artefact|it} on every host, or set PATH: ranks do not read .bashrc",
	Classes: []string{"FileNotFoundError"},
	Match:   textmatch.New(`No such file or directory: '(?P<artefact>[^'/]+)'`),
	Context: textmatch.New(`(?m)^(?:_execute_child|_posix_spawn|_execvpe): `),
}, {
	Category: job.LaunchError, Signature: "exec-format", Confidence: 0.9,
	Hint:    "build the program or the image for the host's machine",
	Needles: []string{"could not open '/lib", "wrong architecture", "does not match the detected host platform"},
	Match:   textmatch.New(`qemu-\w+: Could not open '/lib|Wrong Architecture`),
}, {
	Category: job.LaunchError, Signature: "systemd-unit", Confidence: 0.9,
	Meaning: "systemd cannot start the service: its program, user, directory or limits",
	Hint:    "read what systemd names: systemctl cat and systemd-analyze verify show the unit",
	Needles: []string{"failed at step ", "failed to locate executable", "status=203/exec"},
	Match:   textmatch.New(`Failed at step (?P<artefact>[A-Z_]+) spawning|Failed to locate executable (?P<artefact>[^\s:]+)|status=203/EXEC`),
}, {
	Category: job.LaunchError, Signature: "systemd-unit", Confidence: 0.9, Traits: rule.Kernel,
	Hint:    "read what systemd names: systemctl cat and systemd-analyze verify show the unit",
	Text:    "systemd could not start the service (${title})",
	Needles: []string{"failed at step ", "status=203/exec"},
	Match:   textmatch.New(`Failed at step (?P<artefact>[A-Z_]+) spawning|status=203/EXEC`),
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.9,
	Hint:    limitHint,
	Needles: []string{"reached runtime time limit", "with result 'timeout'", "start operation timed out"},
	Match:   textmatch.New(`reached runtime time limit`),
}, {
	Category: job.TimeLimit, Signature: "batch-time-limit", Confidence: 0.9, Traits: rule.Kernel,
	Hint:    limitHint,
	Text:    "systemd ended the service at its time limit (${title})",
	Needles: []string{"reached runtime time limit"},
}, {
	Category: job.MPIRuntime, Signature: "mpi-without-launcher", Confidence: 0.9,
	Meaning: "Open MPI was started by srun or another launcher, and is not built for that launcher's PMI",
	Hint:    "start it with mpirun or with gangrun, choose srun --mpi=pmix, or build Open MPI with the PMI of that launcher",
	Needles: []string{"opal error: unreachable in file", "was not built with slurm's pmi", "was not built with support", "direct launched using \"srun\"", "ompi was not built with"},
	Match:   textmatch.New(`OPAL ERROR: Unreachable in file (?:pmix|ext|s1|s2)|OMPI was not built with|direct launched using "\w+"`),
}, {
	Category: job.LaunchError, Signature: "license-missing", Confidence: 0.9,
	Meaning: "a library finds no licence that is valid for it",
	Hint:    "put the licence file on every host, or name the licence server in the job's environment",
	Classes: []string{"GurobiError", "CplexSolverError", "Error", "LicenseError"},
	Needles: []string{"license", "err_missing_license"},
	Match:   textmatch.New(`(?i)no gurobi license|size-limited license|license .{0,40}(?:not found|expired|cannot be located|invalid|denied)|(?:failed|unable|could not) .{0,30}license|err_(?:missing_)?license|license error|single-use license|request denied`),
}, {
	Category: job.LaunchError, Signature: "license-missing", Confidence: 0.9,
	Hint:    "put the licence file on every host, or name the licence server in the job's environment",
	Needles: []string{"license checkout failed", "license manager error", "licensing error", "license server", "licensed number of users already reached", "licence server", "no such feature exists", "license request denied", "no license for", "no licenses available", "failed to checkout license", "cannot checkout"},
	Match:   textmatch.New(`(?i)license checkout failed|license manager error|licensing error[: ]*-?\d|(?:could not|cannot|can't|unable to|failed to) (?:connect to|contact|reach|find) (?:the |any )?(?:network )?licen[sc]e (?:server|manager)|licensed number of users already reached|licen[sc]e server (?:machine )?(?:\S+ )?is (?:down|not responding|unreachable)|license request denied|no licenses? (?:is |are )?(?:for|available)|(?:failed to|cannot) checkout (?:a )?licen[sc]e`),
	Unless:  textmatch.New(`(?i)warn|retry|queue|waiting|trying next`),
}, {
	Category: job.OutputError, Signature: "batch-output", Confidence: 0.9,
	Meaning: "the batch system cannot open or return the output files of the job",
	Hint:    "make the directories of the output files (--output, -o, -e) before the job starts, on the file system of the compute nodes",
	Needles: []string{"could not open stdout file", "could not open stderr file", "io setup failed", "opening input/output file", "post job file processing error", "' as standard output", "' as standard error"},
	Match:   textmatch.New(`[Cc]ould not open std(?:out|err) file|IO setup failed|failed opening input/output file|Post job file processing error|Failed to open '(?P<artefact>[^']+)' as standard (?:output|error)`),
}, {
	Category: job.LaunchError, Signature: "environment-missing", Confidence: 0.85,
	Hint:    "see what exists on the host of the job: module avail, conda env list",
	Classes: []string{rule.Message},
	Match:   noEnvironment,
}, {
	Category: job.LaunchError, Signature: "command-not-found", Confidence: 0.6, Traits: rule.Weak,
	Hint:    "install ${artefact|it} on every host, or set PATH: ranks do not read .bashrc",
	Needles: []string{": command not found", ": not found"},
	Match:   textmatch.New(`: (?P<artefact>module|ml|conda|nvidia-smi|spack|ibstat|sinfo|squeue|sacct|lspci|numactl|hwloc-ls|git|tput|dos2unix|bc|xterm|lscpu|free): (?:command )?not found`),
}}
