package diagnose

import "github.com/gangrun/gangrun/internal/job"

const gpuHint = "leave the GPU ${artefact|named} out until it is reset and tested (nvidia-smi -q, dcgmi diag)"

var gpuHardware = []Rule{{
	Category: job.GPUHardware, Signature: "xid-fallen-off-bus", Confidence: 1, Kernel: true,
	Meaning: "the GPU has fallen off the bus (XID 79, 154) or stopped answering (119, 120)",
	Hint:    gpuHint + "; the host mostly needs a restart",
	Text:    "the GPU stopped answering (${title})",
	Needles: []string{"nvrm: xid ", "gpu has fallen off the bus", "fallen off the bus and is not responding"},
	Match:   re(`Xid \(PCI:(?P<artefact>[0-9a-fA-F:.]+)\): (?:79|119|120|154),(?: pid='?(?P<pid>\d+)'?,)?|fallen off the bus`),
}, {
	Category: job.GPUHardware, Signature: "xid-ecc", Confidence: 1, Kernel: true,
	Meaning: "the GPU's memory had errors that could not be corrected (XID 48, 63, 64, 92, 94, 95, 140, 160, 171, 172)",
	Hint:    gpuHint,
	Text:    "the GPU's memory had an error that could not be corrected (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   re(`Xid \(PCI:(?P<artefact>[0-9a-fA-F:.]+)\): (?:48|63|64|92|94|95|140|160|171|172),(?: pid='?(?P<pid>\d+)'?,)?`),
}, {
	Category: job.GPUHardware, Signature: "xid-nvlink", Confidence: 0.95, Kernel: true,
	Meaning: "an NVLink or NVSwitch failed (XID 74, 144 to 150, 155)",
	Hint:    gpuHint,
	Text:    "an NVLink failed (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   re(`Xid \(PCI:(?P<artefact>[0-9a-fA-F:.]+)\): (?:74|14[4-9]|150|155),(?: pid='?(?P<pid>\d+)'?,)?`),
}, {
	Category: job.GPUHardware, Signature: "xid-other", Confidence: 0.9, Kernel: true,
	Meaning: "the driver reports another fault of the GPU (XID 61, 62, 110, 136, 143, 151, 158 ...)",
	Hint:    gpuHint,
	Text:    "the GPU driver reported a fault (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   re(`Xid \(PCI:(?P<artefact>[0-9a-fA-F:.]+)\): (?:56|57|58|61|62|78|81|82|110|121|136|143|151|156|157|158),(?: pid='?(?P<pid>\d+)'?,)?`),
}, {
	Category: job.GPUHardware, Signature: "cuda-ecc", Confidence: 0.95,
	Meaning: "CUDA reports an error of the GPU's memory or links that could not be corrected",
	Hint:    "leave the GPU out until it is reset and tested (nvidia-smi -q, dcgmi diag)",
	Needles: []string{"uncorrectable ecc error", "cuda_error_ecc_uncorrectable", "uncorrectable nvlink error", "cudaerroreccuncorrectable", "double-bit ecc", "gpu is lost", "unable to determine the device handle for gpu", "hardware stack error"},
	Find:    re(`device handle for GPU\s*(?P<artefact>[0-9A-Fa-f:.]+)`),
}}
