package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const memoryHint = "use less memory (smaller batches, fewer data workers, streaming instead of loading whole), fewer ranks a host, or hosts with more"

var cpuOOM = []rule.Rule{{
	Category: job.CPUOOM, Signature: "oom-killer", Confidence: 1, Traits: rule.Kernel,
	Meaning: "the kernel's out-of-memory killer ended the process: the host's or the cgroup's memory was full",
	Hint:    memoryHint,
	Text:    "killed by the kernel because the memory of the host or its cgroup was full (${title})",
	Needles: []string{"killed process ", "oom-kill:"},
	Match:   textmatch.New(`(?i)killed process (?P<pid>\d+)|oom-kill:.*,pid=(?P<pid>\d+)`),
}, {
	Category: job.CPUOOM, Signature: "oom-killer", Confidence: 0.8, Traits: rule.Kernel,
	Hint: memoryHint,
	Text: "killed by SIGKILL, and the kernel's count of out-of-memory kills rose meanwhile (${title})",
	Ends: rule.Ends{Reasons: []job.Reason{job.ReasonOOMKills}},
}, {
	Category: job.CPUOOM, Signature: "container-memory", Confidence: 1,
	Meaning: "the memory of a container was used up by something that does not end with a rank, such as files in /dev/shm, so that the kernel killed gangrun's agent in the container",
	Hint:    "give the container more with --container-memory, or use less; files in /dev/shm count, and stay when the rank is killed that has written them",
	Text:    "lost: ${title}", Ends: rule.Ends{Statuses: []job.ExitStatus{job.Lost}, Reasons: []job.Reason{job.ReasonContainerMemory}},
}, {
	Category: job.CPUOOM, Signature: "batch-oom", Confidence: 0.95, Traits: rule.Verdict,
	Meaning: "the batch system reports an out-of-memory kill in the job's cgroup",
	Hint:    memoryHint + "; or ask the batch system for more memory (Slurm: --mem)",
	Needles: []string{"ran out-of-memory", "term_swap", "running beyond physical memory", "running beyond virtual memory", "' memory limit", "gone over memory limit", "gone over cgroup memory", "exceeded request_memory", "mem limit exceeded", "job hard limit", "memory budget", "memory pressure", "oomkilling", "out of memory: kill", "cgroup out of memory", "oom-kill:constraint", "invoked oom-killer", "result 'oom-kill'", "oom-kill event", "oom_kill event", "out-of-memory handler", ": out of memory", "oomkilled", "exceeded memory limit", "exceeded job memory limit", "term_memlimit", "low on resource: memory", "running low on memory", "memory limit", "out_of_memory", "exceeded its memory", "job killed: mem", "oom-killed", "oom killed", "oom killer", "exceeded allocated memory", "memory usage", "over memory", "mem exceeded", "vmem", "systemd-oomd", "earlyoom", "low memory!", "over cgroup memory limit"},
	Match:   textmatch.New(`oom[-_]kill event|cgroup out-of-memory handler|srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+).*: Out Of Memory|OOMKilled|\bOUT_OF_MEMORY\b|TERM_MEMLIMIT|low on resource: memory|node running low on memory|(?i)beyond the '?(?:physical|virtual)'? memory limit|exceed\w* (?:\d+% )?(?:\w+ )*(?:memory|mem|vmem|rss) ?(?:limit|allocation|request)|memory (?:usage|limit).{0,60}exceeded|(?:job|step|process|task|container|worker|pod) .{0,60}(?:oom[- ]killed|killed by (?:the )?(?:\w+ )?oom|over memory limit|exceed\w* (?:\w+ ){0,3}memory)|killed due to memory|job killed: mem|systemd-oomd killed|low memory!|over cgroup memory limit|earlyoom.*sending SIG|sending SIG(?:TERM|KILL) to process \d+ uid|out of memory: kill(?:ed)? process \d+|memory cgroup out of memory|oom-kill:constraint|invoked oom-killer|result 'oom-kill'|\bran out[- ]of[- ]memory\b|TERM_SWAP|running beyond (?:physical|virtual) memory limits?|gone over (?:cgroup )?memory limit|mem(?:ory)? limit exceeded|exceeds job (?:master )?hard limit "?[hs]_(?:vmem|rss|data)|job killed: (?:p?v?mem|rss)|exceeded \d+% memory budget|due to memory pressure|OOMKilling\b`),
	Unless:  textmatch.New(`(?i)cuda|gpu memory|hit memory limit at least once|possible|potential root causes|may be|might be|could be|per-process|warning|setting|configur|spill|pausing|previous|oom_?killed"?\W{1,3}false|job hard limit "?[hs]_rt`),
}, {
	Category: job.CPUOOM, Signature: "batch-oom", Confidence: 0.9, Traits: rule.Verdict,
	Hint:    memoryHint + "; or ask the batch system for more memory (Slurm: --mem)",
	Needles: []string{"oom_kill ", "oom_kill: ", "oom_kill=", "oom_group_kill ", "oom kills: ", "killing it", "killing pid", "killing process", "killed pid", "killed process", "sigkill"},
	Match:   textmatch.New(`\boom_(?:group_)?kill[ :=]+[1-9]\d*\b|\bOOM kills: [1-9]|(?i)\b(?:rss|memory|mem|ram)\b.{0,20}\d.{0,60}\b(?:killing (?:it|pid|process)|killed (?:pid|process)|(?:sent|sending) sigkill)\b|\b(?:killed|sigkill)\b.{0,20}\bpid \d.{0,40}\b(?:out of memory|rss|memory)\b`),
	Unless:  textmatch.New(`oom_kill[_ ]disable|oom_kill(?:_event)?s? event|(?i)potential|possibl|gpu|\bcache\b`),
}, {
	Category: job.CPUOOM, Signature: "batch-oom", Confidence: 0.8, Traits: rule.Cascade,
	Hint:    memoryHint,
	Needles: []string{"% memory budget"},
	Match:   textmatch.New(`[Ww]orker .*exceeded \d+% memory budget`),
}, {
	Category: job.CPUOOM, Signature: "python-memory-error", Confidence: 0.95,
	Meaning: "Python or NumPy could not allocate memory",
	Hint:    memoryHint,
	Classes: []string{"MemoryError", "_ArrayMemoryError", "ArrayMemoryError", "ArrowMemoryError", "OutOfMemoryException"},
}, {
	Category: job.CPUOOM, Signature: "torch-cpu-allocator", Confidence: 0.95,
	Meaning: "PyTorch could not allocate memory on the CPU",
	Hint:    memoryHint,
	Needles: []string{"defaultcpuallocator: can't allocate memory", "defaultcpuallocator: not enough memory"},
	Find:    textmatch.New(`tried to allocate (?P<artefact>\d+) bytes`),
}, {
	Category: job.CPUOOM, Signature: "native-out-of-memory", Confidence: 0.95,
	Meaning: "a C++, Rust, Go, Julia or Java program could not allocate memory",
	Hint:    memoryHint,
	Classes: []string{"std::bad_alloc", "std::bad_array_new_length", "OutOfMemoryError"},
	Unless:  textmatch.New(`(?i)cuda|hip|gpu`),
}, {
	Category: job.CPUOOM, Signature: "native-out-of-memory", Confidence: 0.9,
	Hint:    memoryHint,
	Needles: []string{"std::bad_alloc", "memory allocation of ", "runtime: out of memory", "java.lang.outofmemoryerror", "cannot allocate memory", "allocation would exceed memory limit", "virtual memory exhausted", "could not reserve enough space", "not enough memory", "out of memory!", "cannot allocate vector of size", "insufficient virtual memory", "insufficient memory", "failed to allocate", "error: out of memory", "allocation failure", "memory exhausted", "out of memory allocating", "java heap space", "memory allocation failed", "heap out of memory", "process out of memory", "runtime: cannot allocate", "could not allocate", "could not re-allocate", "exceeds maximum array size", "error allocating ", "request more memory space", "malloc failed", "calloc failed", "realloc failed", "malloc of size ", "out of memory", "cannot allocate ", "out-of-memory", "mpi_err_no_mem", "insufficient heap", "unable to alloc ", "oom when allocating", "returned null"},
	Match:   textmatch.New(`std::bad_alloc|memory allocation of \d+ bytes failed|runtime: out of memory|OutOfMemoryError|[Cc]annot allocate memory|exceed memory limit|memory exhausted|Could not reserve enough space|^Out of memory!|cannot allocate vector of size|(?i)insufficient (?:virtual )?memory|failed to allocate (?:\d|memory|array|buffer|matrix|\S+ (?:bytes|[KMG]i?B))|not enough memory|^error:? out of memory|\b(?:malloc|calloc|realloc|mmap|new|allocate)\b.{0,60}(?:returned null|: out of memory)|(?:memory )?allocation (?:of \S+ \w+ )?fail(?:ed|ure)|out of memory allocating|heap out of memory|process out of memory|runtime: cannot allocate|could not (?:re-)?allocate (?:\d|memory|block of size|enough)|exceeds maximum array size|error allocating \d+ bytes|request more memory space|\b[mcr]e?alloc (?:of size \d+ )?failed|unable to alloc \d+ bytes|cannot allocate (?:memory|\d+ (?:\w*bytes|[kmg]i?b))|^\s*(?:\S*[\]:>] *|\S+ \S+: ){0,4}(?:fatal|error|failed|fatal error)?:? ?out[- ]of[- ]memory\b|\*\*\* MPI_ERR_NO_MEM|insufficient (?:heap|stack|dynamic) (?:memory|space)|OOM when allocating .*allocator (?:mkl)?cpu`),
	Unless:  textmatch.New(`static TLS|\bNPU\b|aclrt|\bE[A-Z]\d{4}: |CUDA|cuda|ib_|memlock|NCCL WARN|HIP|hip|GPU|shared memory|/dev/shm|[hH]uge ?page|device memory|(?i)\bVRAM\b|warning|vulkan|metal|\bxpu\b|RESOURCE_EXHAUSTED|\bdevice:?\b|allocate (?:port|address|pty|tty|GPU|node|resource)|(?:avoid|prevent|in case of|if|when|may|might|handle|cause|causing|reduce|against) (?:\w+ )?out[- ]of[- ]memory|out[- ]of[- ]memory (?:guard|killer|events?|handl|check|protect|score|count)|out[- ]of[- ]memory: ?\d+$|\bpages\b`),
}, {
	Category: job.CPUOOM, Signature: "oom-killer", Confidence: 0.9, Traits: rule.Kernel,
	Hint:    memoryHint,
	Text:    "killed because the memory of the host or its cgroup was full (${title})",
	Needles: []string{"systemd-oomd killed", "killed by the oom killer", "result 'oom-kill'", "due to memory pressure", "earlyoom", "low memory! at or below"},
	Match:   textmatch.New(`systemd-oomd killed \d+ process|has been killed by the OOM killer|result 'oom-kill'|systemd-oomd\[\d+\]: Killed .* due to memory (?:pressure|used)|earlyoom.*sending SIG(?:TERM|KILL) to process (?P<pid>\d+)`),
}}
