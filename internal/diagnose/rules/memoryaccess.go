package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const debugHint = "run it in a debugger, or build it with -g -fsanitize=address; for Python, python -X faulthandler tells the line"

var invalidMemoryAccess = []Rule{{
	Category: job.InvalidMemoryAccess, Signature: "sanitizer", Confidence: 0.98,
	Meaning: "AddressSanitizer found a bad memory access",
	Hint:    "look at the first frame of the report that is the program's own",
	Needles: []string{"error: addresssanitizer: "},
	Match:   textmatch.New(`AddressSanitizer: (?P<artefact>[\w-]+)`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "heap-corruption", Confidence: 0.95,
	Meaning: "the C library found its heap or stack overwritten (double free, buffer overflow)",
	Hint:    debugHint,
	Needles: []string{"double free or corruption", "free(): ", "malloc(): ", "realloc(): ", "malloc_consolidate(): ", "corrupted size vs. prev_size", "corrupted double-linked list", "munmap_chunk(): invalid pointer", "stack smashing detected", "buffer overflow detected"},
	Match:   textmatch.New(`double free or corruption|(?:free|malloc|realloc|malloc_consolidate|munmap_chunk)\(\): (?:invalid|double free|corrupted|unaligned|memory corruption|mismatching|smallbin|unsorted|mmap|chunk)|corrupted|smashing|overflow`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "segfault-trace", Confidence: 0.98,
	Meaning: "a segmentation fault or bus error with a trace",
	Hint:    debugHint,
	Needles: []string{"fatal python error: segmentation fault", "fatal python error: bus error", "signal: segmentation fault (11)", "signal: bus error (7)", "program received signal sigsegv", "program received signal sigbus", "signal (11): segmentation fault",
		"signal (7): bus error", "sigsegv: segmentation", "sigsegv, segmentation fault occurred", "!!!!!!! segfault encountered", "caught signal 11 (segmentation fault", "process received signal ***"},
	Match: textmatch.New(`(?i)segmentation|bus error|sigsegv|sigbus|segfault`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "kernel-segfault", Confidence: 1, Traits: Kernel,
	Meaning: "the kernel noted where the process accessed memory that does not belong to it",
	Hint:    "look at ${artefact|the place named} first; " + debugHint,
	Text:    "ended by SIGSEGV: ${title}",
	Needles: []string{"segfault at ", "general protection"},
	Match:   textmatch.New(`\[(?P<pid>\d+)\]:? (?:segfault at|general protection).*?(?: in (?P<artefact>[^\s\[]+)|$)`),
}, {
	Category: job.InvalidMemoryAccess, Signature: "sigsegv", Confidence: 1,
	Meaning: "the process accessed memory that does not belong to it",
	Hint:    debugHint,
	Text:    "ended by a segmentation fault, ${signal}${core}", Ends: Ends{Signals: []int{11}},
}, {
	Category: job.InvalidMemoryAccess, Signature: "sigbus", Confidence: 1,
	Meaning: "the process accessed memory that the kernel cannot provide: a mapped file that was cut, full shared memory, bad alignment",
	Hint:    "check that /dev/shm is large enough and that no mapped file was rewritten; else " + debugHint,
	Text:    "ended by a bus error, ${signal}${core}", Ends: Ends{Signals: []int{7}},
}, {
	Category: job.InvalidMemoryAccess, Signature: "cuda-illegal-access", Confidence: 0.9,
	Meaning: "a GPU kernel accessed memory that does not belong to it",
	Hint:    "tried elsewhere first; where it comes back, run compute-sanitizer or CUDA_LAUNCH_BLOCKING=1 to find the kernel",
	Needles: []string{"illegal memory access", "cuda_error_illegal_address", "misaligned address", "invalid program counter", "warp illegal", "hiperrorillegaladdress", "memory access fault by gpu"},
}, {
	Category: job.InvalidMemoryAccess, Signature: "child-segfault", Confidence: 0.85,
	Meaning: "a child process of the program ended by a segmentation fault or bus error",
	Hint:    debugHint,
	Classes: []string{"*"},
	Needles: []string{"is killed by signal: segmentation fault", "sigsegv", "sigbus", "exited with -11", "exit code -11", "exitcode -11", "returned -11", "code: -11", "code 139", "status 139"},
	Match:   textmatch.New(`killed by signal: Segmentation fault|SIG(?:SEGV|BUS)|(?:exit(?:ed)?|exitcode|returned|code:?|status)(?: with)?(?: code| status)?[ =:]*(?:-11|139)\b`),
}}
