package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const gpuHint = "leave the GPU ${artefact|named} out until it is reset and tested (nvidia-smi -q, dcgmi diag)"

// xid makes the pattern of a driver's XID record with one of those codes.
func xid(codes string) *textmatch.Pattern {
	return textmatch.New(`Xid \((?:PCI:)?(?P<artefact>[0-9a-fA-F:.]+)\): (?:` + codes + `)(?: pid='?(?P<pid>\d+)'?,)?`)
}

// Codes and meanings are those of NVIDIA's XID catalogue ("Analyzing Xid Errors
// with the Xid Catalog"): here are those whose immediate action is to reset the
// GPU or the host, and the errors of memory and links; in cudafailure.go those
// whose action is to restart the program. Those to be ignored are in neither.
var gpuHardware = []Rule{{
	Category: job.GPUHardware, Signature: "xid-fallen-off-bus", Confidence: 1, Traits: Kernel,
	Meaning: "the GPU has fallen off the bus (XID 79) or stopped answering (46, 119, 120, 158, 167)",
	Hint:    gpuHint + "; the host mostly needs a restart",
	Text:    "the GPU stopped answering (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:46|79|119|120|158|167),"),
}, {
	Category: job.GPUHardware, Signature: "xid-fallen-off-bus", Confidence: 1, Traits: Kernel,
	Hint:    gpuHint + "; the host mostly needs a restart",
	Text:    "the GPU stopped answering (${title})",
	Needles: []string{"fallen off the bus"},
	Find:    textmatch.New(`(?:GPU|PCI) (?P<artefact>[0-9a-fA-F]+:[0-9a-fA-F:.]+)`),
	Unless:  textmatch.New(`Xid`),
}, {
	Category: job.GPUHardware, Signature: "xid-ecc", Confidence: 1, Traits: Kernel,
	Meaning: "the GPU's memory had an error that could not be corrected (XID 48, 64, 94, 95, 140)",
	Hint:    gpuHint,
	Text:    "the GPU's memory had an error that could not be corrected (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:48|64|94|95|140),"),
}, {
	Category: job.GPUHardware, Signature: "xid-nvlink", Confidence: 0.95, Traits: Kernel,
	Meaning: "an NVLink failed (XID 74, 136, 155, and 144 to 150 where they say fatal)",
	Hint:    gpuHint,
	Text:    "an NVLink failed (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:74|136|155),|(?:14[4-9]|150),.* Fatal"),
}, {
	Category: job.GPUHardware, Signature: "xid-other", Confidence: 0.9, Traits: Kernel,
	Meaning: "the driver reports another fault of the GPU that only a reset can fix (XID 54, 62, 110, 143, 156)",
	Hint:    gpuHint,
	Text:    "the GPU driver reported a fault (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:54|62|110|143|156),"),
}, {
	Category: job.GPUHardware, Signature: "cuda-ecc", Confidence: 0.95,
	Meaning: "CUDA reports an error of the GPU's memory or links that could not be corrected",
	Hint:    "leave the GPU out until it is reset and tested (nvidia-smi -q, dcgmi diag)",
	Needles: []string{"uncorrectable ecc error", "cuda_error_ecc_uncorrectable", "uncorrectable nvlink error", "cudaerroreccuncorrectable", "double-bit ecc", "gpu is lost", "unable to determine the device handle for gpu", "hardware stack error"},
	Find:    textmatch.New(`device handle for GPU\s*(?P<artefact>[0-9A-Fa-f:.]+)`),
}}
