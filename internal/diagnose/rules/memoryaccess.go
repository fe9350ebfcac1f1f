package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const debugHint = "run it in a debugger, or build it with -g -fsanitize=address; for Python, python -X faulthandler tells the line"

var invalidMemoryAccess = []rule.Rule{{
	Category: job.InvalidMemoryAccess, Signature: "sanitizer", Confidence: 0.98,
	Meaning: "AddressSanitizer or MemorySanitizer found a bad memory access",
	Hint:    "look at the first frame of the report that is the program's own",
	Needles: []string{"error: addresssanitizer: ", "error: hwaddresssanitizer: ", "warning: memorysanitizer: ", "sanitizer: segv on", "gwp-asan detected", "valgrind: the 'impossible'"},
	Match:   textmatch.New(`AddressSanitizer: (?P<artefact>[\w-]+)|MemorySanitizer: (?P<artefact>[\w-]+)|Sanitizer: SEGV|GWP-ASan detected`),
	Unless:  textmatch.New(`Sanitizer: (?:FPE|ILL|ABRT) on`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "heap-corruption", Confidence: 0.95,
	Meaning: "the C library found its heap or stack overwritten (double free, buffer overflow)",
	Hint:    debugHint,
	Needles: []string{"double free or corruption", "free(): ", "malloc(): ", "realloc(): ", "malloc_consolidate(): ", "corrupted size vs. prev_size", "corrupted double-linked list", "munmap_chunk(): ", "mremap_chunk(): ", "stack smashing detected", "buffer overflow detected", "sysmalloc", "_int_malloc: ", "_int_free: ", "attempt to free invalid pointer", "mimalloc: error", "pointer being freed was not allocated", "longjmp causes uninitialized stack", "heap corruption", "invalid fastbin entry", "<jemalloc>: error"},
	Match:   textmatch.New(`double free or corruption|(?:free|malloc|realloc|malloc_consolidate|munmap_chunk)\(\): (?:invalid|double free|corrupted|unaligned|memory corruption|mismatching|smallbin|unsorted|mmap|chunk)|corrupted|smashing|buffer overflow detected|mremap_chunk\(\): |sysmalloc: Assertion|\(sysmalloc\): assertion failed|_int_(?:malloc|free): Assertion|Attempt to free invalid pointer|mimalloc: error: (?:double free|corrupted|buffer overflow|invalid pointer|heap)|pointer being freed was not allocated|longjmp causes|[Hh]eap corruption (?:detected|of)|invalid fastbin entry|<jemalloc>: Error`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "segfault-trace", Confidence: 0.98,
	Meaning: "a segmentation fault or bus error with a trace",
	Hint:    debugHint,
	Needles: []string{"fatal python error: segmentation fault", "signal: segmentation fault (11)", "program received signal sigsegv", "caught sigsegv", "got sigsegv", "signal (11): segmentation fault",
		"sigsegv: segmentation", "sigsegv, segmentation fault occurred", "!!!!!!! segfault encountered", "caught signal 11 (segmentation fault", "segmentation fault", "segmentation violation", "sigsegv (0xb) at pc", "*** sigsegv ", "caught segfault ***", "memory access violation at address", "received sigsegv for address", "signal number 11 segv", "died from signal 11", "terminated with signal 11", "terminated by signal 11", "11/segv", "signal sigsegv", "killed by sigsegv", "access violation detected", "has overflowed its stack"},
	Match:  textmatch.New(`(?i)fatal python error: segmentation|has overflowed its stack|signal: segmentation fault \(11\)|(?:received|by|caught|got) (?:signal )?sigsegv|signal \(?11(?:\.\d+)?\)?(?: \(\d+\))?: segmentation fault|sigsegv: segmentation|sigsegv, segmentation|segfault encountered|caught signal 11 \(segmentation|caught error: segmentation fault \(signal 11\)|^(?:error: )?segmentation violation|sigsegv \(0xb\) at pc|\*\*\* sigsegv (?:received|\(@)|caught segfault \*\*\*|memory access violation at address|signal number 11 segv|rank (?P<rank>\d+)\)? (?:died from|terminated with) signal 11\b|PE RANK (?P<rank>\d+) exit signal segmentation|rank: (?P<rank>\d+), pid: \d+\) terminated with signal 11\b|(?:command|terminated by|died from|terminated with) signal 11\b|status=11/SEGV|signal 11/SEGV|^zsh: segmentation fault|^make(?:\[\d+\])?: \*\*\* .*\] segmentation fault|segmentation fault. is detected by the operating system|access violation detected at|^(?:\S+: )segmentation fault(?: \(core dumped\))?$`),
	Unless: textmatch.New(`(?i)as (?:wanted|expected|intended)|could be caused|may be|might be|no segmentation fault|\bhandler|warning`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "kernel-segfault", Confidence: 1, Traits: rule.Kernel,
	Meaning: "the kernel noted where the process accessed memory that does not belong to it",
	Hint:    "look at ${artefact|the place named} first; " + debugHint,
	Text:    "ended by SIGSEGV: ${title}",
	Needles: []string{"segfault at ", "general protection"},
	Match:   textmatch.New(`\[(?P<pid>\d+)\]:? (?:segfault at|general protection).*?(?: in (?P<artefact>[^\s\[]+)|$)`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "sigsegv", Confidence: 1,
	Meaning: "the process accessed memory that does not belong to it",
	Hint:    debugHint,
	Text:    "ended by a segmentation fault, ${signal}${core}", Ends: rule.Ends{Signals: []int{11}},
}, {
	Category: job.InvalidMemoryAccess, Signature: "sigbus", Confidence: 1,
	Meaning: "the process accessed memory that the kernel cannot provide: a mapped file that was cut, full shared memory, bad alignment",
	Hint:    "check that /dev/shm is large enough and that no mapped file was rewritten; else " + debugHint,
	Text:    "ended by a bus error, ${signal}${core}", Ends: rule.Ends{Signals: []int{7}},
}, {
	Category: job.InvalidMemoryAccess, Signature: "cuda-illegal-access", Confidence: 0.9,
	Meaning: "a GPU kernel accessed memory that does not belong to it",
	Hint:    "tried elsewhere first; where it comes back, run compute-sanitizer or CUDA_LAUNCH_BLOCKING=1 to find the kernel",
	Needles: []string{"illegal memory access", "cuda_error_illegal_address", "misaligned address", "invalid program counter", "warp illegal", "hiperrorillegaladdress", "memory access fault by gpu"},
}, {
	Category: job.InvalidMemoryAccess, Signature: "child-segfault", Confidence: 0.85, Traits: rule.Verdict,
	Meaning: "a child process of the program ended by a segmentation fault or bus error",
	Hint:    "run the test by itself in a debugger: ctest -R ${artefact|NAME} -V shows its command",
	Needles: []string{"***exception: segfault", "(segfault)", "***exception: bus error"},
	Match:   textmatch.New(`\*\*\*Exception: (?:SegFault|Bus error)|^\s+\d+ - (?P<artefact>\S+) \(SEGFAULT\)`),
	Find:    textmatch.New(`Test +#\d+: (?P<artefact>\S+) \.`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "child-segfault", Confidence: 0.85,
	Hint:    debugHint,
	Classes: []string{"*"},
	Needles: []string{"is killed by signal: segmentation fault", "sigsegv", "sigbus", "exited with -11", "exit code -11", "exitcode -11", "returned -11", "code: -11", "code 139", "status 139"},
	Match:   textmatch.New(`killed by signal: Segmentation fault|SIG(?:SEGV|BUS)|(?:exit(?:ed)?|exitcode|returned|code:?|status)(?: with)?(?: code| status)?[ =:]*(?:-11|139)\b`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "segfault-trace", Confidence: 0.95, Traits: rule.Generic,
	Hint:    "check that /dev/shm is large enough and that no mapped file was rewritten; else " + debugHint,
	Needles: []string{"bus error", "sigbus", "7/bus", "terminated with signal 7", "died from signal 7"},
	Match:   textmatch.New(`(?i)fatal python error: bus error|signal: bus error \(7\)|(?:received|by|caught|got) (?:signal )?sigbus|signal \(?7(?:\.\d+)?\)?(?: \(\d+\))?: bus error|sigbus: bus error|sigbus \(0x7\) at pc|\*\*\* sigbus (?:received|\(@)|caught bus error \*\*\*|caught signal 7 \(bus error|caught error: bus error \(signal 7\)|PE RANK (?P<rank>\d+) exit signal bus error|rank (?P<rank>\d+)\)? (?:died from|terminated with) signal 7\b|(?:terminated by|died from|terminated with) signal 7\b|status=7/BUS|signal 7/BUS|^zsh: bus error|^make(?:\[\d+\])?: \*\*\* .*\] bus error|^(?:\S+: )bus error(?: \(core dumped\))?$`),
	Unless:  textmatch.New(`(?i)as (?:wanted|expected|intended)|could be caused|may be|might be|handler|warning`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "child-segfault", Confidence: 0.7, Traits: rule.Generic,
	Hint:    debugHint,
	Needles: []string{"exited with code 139", "exit code 139", "exit status 139", "exit code: 139", "exitcode: -11", "exit code -11"},
	Unless:  textmatch.New(`(?i)warn`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "segfault-trace", Confidence: 0.9,
	Hint:    "look at the first of the program's own functions in the stack trace: a pointer there is nil",
	Needles: []string{"nil pointer dereference", "null pointer", "runtime error: "},
	Match:   textmatch.New(`panic: runtime error: invalid memory address or nil pointer dereference|runtime error: (?:load of|store to|member (?:access|call)|reference binding to|applying \S+ offset).* (?:null pointer|misaligned address|address 0x\w+ with insufficient space)`),
}, {
	Category: job.SemanticError, Signature: "thread-sanitizer", Confidence: 0.8,
	Meaning: "ThreadSanitizer found threads that use the same memory at once",
	Hint:    "guard what the report names with a lock, or give each thread its own",
	Needles: []string{"warning: threadsanitizer: "},
	Match:   textmatch.New(`WARNING: ThreadSanitizer: (?:data race|lock-order|heap-use|signal-unsafe|thread leak|destroy of)`),
}, {
	Category: job.SemanticError, Signature: "memory-leak", Confidence: 0.6, Traits: rule.Generic,
	Meaning: "LeakSanitizer found memory that the program did not free, and therefore ended the program with an error",
	Hint:    "free what the report names, or set ASAN_OPTIONS=detect_leaks=0",
	Needles: []string{"error: leaksanitizer: detected memory leaks"},
}}
