package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const gpuHint = "leave the GPU ${artefact|named} out until it is reset and tested (nvidia-smi -q, dcgmi diag)"

// xid returns the pattern of a driver's record of an XID with one of the codes.
func xid(codes string) *textmatch.Pattern {
	return textmatch.New(`Xid \((?:PCI:)?(?P<artefact>[0-9a-fA-F:.]+)\): (?:` + codes + `)(?: pid='?(?P<pid>\d+)'?,)?`)
}

// Codes and meanings are those of NVIDIA's XID catalogue ("Analyzing Xid Errors with the Xid Catalog"). This file has
// the codes whose immediate action is to reset the GPU or the host, and the errors of memory and links. cudafailure.go
// has the codes whose immediate action is to restart the program. Codes to be ignored are in neither file.
var gpuHardware = []rule.Rule{{
	Category: job.GPUHardware, Signature: "xid-fallen-off-bus", Confidence: 1, Traits: rule.Kernel,
	Meaning: "the GPU has fallen off the bus (XID 79) or stopped answering (46, 119, 120, 158, 167)",
	Hint:    gpuHint + "; the host mostly needs a restart",
	Text:    "the GPU stopped answering (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:46|79|119|120|158|167),"),
}, {
	Category: job.GPUHardware, Signature: "xid-fallen-off-bus", Confidence: 1, Traits: rule.Kernel,
	Hint:    gpuHint + "; the host mostly needs a restart",
	Text:    "the GPU stopped answering (${title})",
	Needles: []string{"fallen off the bus"},
	Find:    textmatch.New(`(?:GPU|PCI) (?P<artefact>[0-9a-fA-F]+:[0-9a-fA-F:.]+)`),
	Unless:  textmatch.New(`Xid`),
}, {
	Category: job.GPUHardware, Signature: "xid-ecc", Confidence: 1, Traits: rule.Kernel,
	Meaning: "the GPU's memory had an error that could not be corrected (XID 48, 64, 94, 95, 140)",
	Hint:    gpuHint,
	Text:    "the GPU's memory had an error that could not be corrected (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:48|64|94|95|140),"),
}, {
	Category: job.GPUHardware, Signature: "xid-nvlink", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "an NVLink failed (XID 74, 136, 155, and 144 to 150 if the record says that the error is fatal)",
	Hint:    gpuHint,
	Text:    "an NVLink failed (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:74|136|155),|(?:14[4-9]|150),.*\\bFatal"),
}, {
	Category: job.GPUHardware, Signature: "xid-other", Confidence: 0.9, Traits: rule.Kernel,
	Meaning: "the driver reports another fault of the GPU that only a reset can fix (XID 54, 62, 110, 143, 156)",
	Hint:    gpuHint,
	Text:    "the GPU driver reported a fault (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:54|62|109|110|143|156|163|171|172),"),
}, {
	Category: job.GPUHardware, Signature: "xid-recovery", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "the driver says that the GPU or its host needs a reset (XID 154)",
	Hint:    gpuHint,
	Text:    "the GPU driver asks for a reset (${title})",
	Needles: []string{"gpu recovery action changed"},
	Match:   textmatch.New(`Xid \((?:PCI:)?(?P<artefact>[0-9a-fA-F:.]+)\): 154\b.* to 0x\w+ \((?:[^)]*(?:Reset|Reboot|Drain|Recover)[^)]*)\)`),
}, {
	Category: job.GPUHardware, Signature: "gpu-reset", Confidence: 0.9, Traits: rule.Kernel,
	Meaning: "the driver of an AMD, Intel or NVIDIA GPU lost the GPU, could not reset it, or found an error of its memory",
	Hint:    gpuHint,
	Text:    "the GPU driver lost the GPU (${title})",
	Needles: []string{"uncorrectable hardware error", "device lost from bus", "gpu reset", "ring reset", "reset failed", "as wedged", "amdgpu_job_timedout", "gsp timeout **", "marked for reset", "ras fatal error", "rmiinitadapter failed", "failed to initialize the nvidia gpu", "fatal hardware error", "device wedged", "going to hard-reset", "gpu recovery failed"},
	Match: textmatch.New(`uncorrectable hardware errors? detected|device lost from bus|amdgpu.*(?:GPU reset(?:\(\d+\))? (?:begin|failed)|(?i:ring \S+ reset failed)|GPU recovery failed)|amdgpu_job_timedout.*ring \S+ timeout, signaled|(?:xe|i915|habanalabs|hl) .*(?:as wedged|device wedged|going to hard-reset|fatal hardware error)|\* GSP Timeout \*|GPU marked for reset|` +
		`RAS fatal error|RmInitAdapter failed|[Ff]ailed to initialize the NVIDIA GPU`),
	Find:   textmatch.New(`(?P<artefact>[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)`),
	Unless: textmatch.New(`soft recovered|\bXid\b`),
}, {
	Category: job.GPUHardware, Signature: "cuda-ecc", Confidence: 0.95,
	Meaning: "CUDA reports an error of the GPU's memory or links that could not be corrected",
	Hint:    "leave the GPU out until it is reset and tested (nvidia-smi -q, dcgmi diag)",
	Needles: []string{"uncorrectable ecc error", "cuda_error_ecc_uncorrectable", "uncorrectable nvlink error", "over nvlink or a hardware error", "cuda_error_nvlink_uncorrectable", "cudaerrornvlinkuncorrectable", "nvmlerror_gpuislost", "cuda_error_hardware_stack_error", "cudaerroreccuncorrectable", "double-bit ecc", "gpu is lost", "unable to determine the device handle for gpu", "hardware stack error"},
	Find:    textmatch.New(`device handle for GPU\s*(?P<artefact>[0-9A-Fa-f:.]+)`),
	Unless:  textmatch.New(`(?i)\b(?:no|0|zero) (?:\w+ )?uncorrectable|uncorrectable ecc[^:=]*[:=|]\s*(?:0\b|N/A|no)|uncorrectable ecc (?:errors? )?(?:count|counter|check|mode|is )|passed|: ok\b`),
}, {
	Category: job.GPUHardware, Signature: "nvswitch-fatal", Confidence: 0.95, Traits: rule.Kernel,
	Meaning: "an NVSwitch, or the PCIe link of a device, reported a fatal error",
	Hint:    gpuHint,
	Text:    "the fabric of the GPUs failed (${title})",
	Needles: []string{"sxid", "nvswitch fatal", "aer: uncorrected", "nvidia-nvswitch", "pcie bus error: severity=uncorrected", "gpu has been lost", "uncorrectable ecc", "row remapper", "row remapping failure"},
	Match:   textmatch.New(`SXid \(PCI:(?P<artefact>[\w:.]+)\): \d+, Fatal|NVSwitch fatal|AER: Uncorrected \(Fatal\)|severity=Uncorrected \(Fatal\)|[Rr]ow[- ]remapp\w+ (?:has )?fail`),
}, {
	Category: job.GPUHardware, Signature: "gpu-reported-sick", Confidence: 0.85,
	Meaning: "a monitor, a self-test or the driver reports a faulty GPU",
	Hint:    gpuHint,
	Needles: []string{"fallen off the bus", "gpu is lost", "gpu lost", "requires reset", "row remapping", "row remap", "gpu health check", "dcgm", "ecc error", "nvlink error", "ecc_uncorrectable", "uncorrectable", "unhealthy gpu", "gpu is unhealthy", "bad gpu", "faulty gpu", "gpu hang", "gpu reset", "hardware error", "xid error", "nvml_error_gpu_is_lost", "err!", "xid ",
		"hiperrorecc", "a dbe has been detected", "dbe volatile ecc", "drain the gpu and reset", "core halted unexpectedly", "xiderror", "xid=", "nvlink down", "exceeds shutdown threshold", "(faulty)", "failed hardware check", "sdc detected", "silent data corruption", "gpu fault", "gpu failure", "possible persistent error", "hbm uecc", "ras uncorrect", "poison", "thermal shutdown", "gpu recovery", "device lost"},
	Match: textmatch.New(`(?i)fallen off the bus|\bGPU (?:is )?lost\b|GPU requires reset|row[- ]remap\w*.{0,40}(?:fail|pending\W+(?:yes|true|[1-9]))|(?:dcgm|diag\w*|health[- ]?check\w*)\b.{0,100}\b(?:gpu|nvlink|ecc|pcie)\b.{0,60}\b(?:fail\w*|unhealthy|error)|(?:gpu|nvlink|ecc|pcie)\b.{0,80}\b(?:health[- ]?check|diag\w*)\b.{0,40}\bfail|` +
		`uncorrect\w+ (?:\w+ )?(?:ecc|memory|nvlink) error|\bDBE (?:has been detected|volatile ECC)|drain the GPU and reset it|reason ?:GPU Hang|Core halted unexpectedly|silent data corruption (?:detected|found|suspected)|\bSDC detected|[Pp]ossible persistent error!|XidErrorCritical|\bXid=(?:48|62|64|74|79|94|95|119|120|140)\b|NVLink down on|exceeds shutdown threshold|\bGPU \d+: \d+ errors +\(FAULTY\)|uncorrectable errors in volatile ECC|\bGPU (?:fault|failure|crash) (?:detected|on)|HBM (?:UECC|uncorrectable)|(?:double[- ]bit|dbe|uncorrectable) ecc|ecc[_ ]uncorrectable|uncorrectable errors?\W+[1-9]|(?:unhealthy|bad|faulty) GPU|GPU (?:\S+ )?is (?:unhealthy|faulty|bad)|NVML_ERROR_GPU_IS_LOST|\bERR!\s|\bXid (?:error )?(?:\(PCI:[\w:.]+\): )?(?:48|62|64|74|79|94|95|119|120|140|14[3-9]|150|154)\b|hipErrorECC|` +
		`(?:amdgpu|ROCm).*(?:RAS|ras) .*uncorrect|amdgpu.*GPU (?:reset|recovery).*(?:fail|begin)|\[amdgpu\].*ring \w+ timeout|DEVICE_LOST|uncorrectable NVLink`),
	Find:   textmatch.New(`(?P<artefact>GPU-[0-9a-f-]{8,}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)`),
	Unless: textmatch.New(`(?i)\b(?:0|no|zero) (?:uncorrect|ecc|xid|nvlink)|corrected|\bwill reset|errors?\W+0\b|passed\b|: ok\b|N/A`),
}}
