package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var assertion = []rule.Rule{{
	Category: job.Assertion, Signature: "python-assertion", Confidence: 0.95,
	Meaning: "an assertion of the program failed (Python, Julia, R)",
	Hint:    "the program checks this itself: make what it asserts true, or correct the assertion",
	Classes: []string{"AssertionError"},
}, {
	Category: job.Assertion, Signature: "python-assertion", Confidence: 0.95,
	Hint:    "the program checks this itself: make what it asserts true, or correct the assertion",
	Needles: []string{"error in ", "error: "},
	Context: textmatch.New(`^Calls: .*\b(?:stopifnot|assert\w*|expect_\w+|abort_if\w*)(?: ->|$)`),
}, {
	Category: job.Assertion, Signature: "python-assertion", Confidence: 0.95,
	Hint:    "the program checks this itself: make what it asserts true, or correct the assertion",
	Needles: []string{" is not true", " are not all true"},
	Match:   textmatch.New(`^Error(?: in .*)? ?: .*(?: is not TRUE| are not all TRUE)$`),
}, {
	Category: job.Assertion, Signature: "c-assertion", Confidence: 0.95,
	Meaning: "a C or C++ assert failed",
	Hint:    "make ${artefact|the condition} true, or run the program in a debugger to see why it is not",
	Needles: []string{"assertion \"", "assertion `", "assertion '", "assertion failed", "assertion failure", "assertion violated", "verification failed: ", "amrex::abort::", "the violated condition was", "java.lang.assertionerror"},
	Match:   textmatch.New("Assertion [`'](?P<artefact>.+)' failed|Assertion \"(?P<artefact>.+)\" failed|Assertion failed in file (?P<artefact>\\S+ at line \\d+)|^\\W*Verification failed: \\(|amrex::Abort::\\d+::Assertion `|^The violated condition was|Exception in thread \".*AssertionError|(?i)^(?:\\S+ ){0,5}assertion (?:failed|failure|violated)\\b(?: at | in |: ?\\S.{3})"),
	Unless:  textmatch.New("thread: \\[|(?i)warn|ignor|continu|could not reach host|no heartbeat"),
}, {
	Category: job.Assertion, Signature: "rust-assertion", Confidence: 0.95,
	Meaning: "a Rust assert! failed",
	Hint:    "make true what the assertion at the place named checks",
	Classes: []string{"rust panic"},
	Needles: []string{"assertion failed", "assertion `"},
}, {
	Category: job.Assertion, Signature: "check-failed", Confidence: 0.9,
	Meaning: "a CHECK of a library failed (glog, abseil, TensorFlow, XLA)",
	Hint:    "the library checks this itself: look at the values in the message and at the call above it",
	Needles: []string{"check failed: "},
	Match:   textmatch.New(`^(?:F\d{4}|F |(?i:\S+:? ){0,4}CHECK failed|.*\bF\d* |.*: F |.*FATAL|F\d+)|^.*\] Check failed|^Check failed`),
}, {
	Category: job.Assertion, Signature: "device-assertion", Confidence: 0.8,
	Meaning: "an assertion in a GPU kernel failed, and the output does not show that an index or a label is out of range",
	Hint:    "run once with CUDA_LAUNCH_BLOCKING=1 (or on the CPU) to see the line of the program",
	Needles: []string{"device-side assert triggered", "cuda_error_assert", "cudaerrorassert", "thread: ["},
	Unless:  textmatch.New(`(?i)srcIndex < srcSelectDimSize|index out of bounds|t >= 0 && t < n_classes|cur_target >= 0|ind >=0 && ind < ind_dim_size`),
	Match:   textmatch.New("(?i)assert triggered|ERROR_?ASSERT|block: \\[.*thread: \\[.*Assertion `(?P<artefact>.+)` failed"),
}}
