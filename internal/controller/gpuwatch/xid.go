package gpuwatch

import (
	"strconv"

	"github.com/gangrun/gangrun/internal/job"
)

// xids has the names of driver errors that training jobs meet, by their XID numbers. The names come from NVIDIA's
// catalogue "XID Errors".
var xids = map[int]string{
	13:  "graphics engine exception",
	31:  "GPU memory page fault",
	32:  "invalid or corrupted push buffer stream",
	38:  "driver firmware error",
	43:  "GPU stopped processing",
	45:  "preemptive cleanup, due to previous errors",
	46:  "GPU stopped processing",
	48:  "double bit ECC error",
	54:  "auxiliary power is not connected to the GPU board",
	61:  "internal micro-controller breakpoint",
	62:  "internal micro-controller halt",
	63:  "ECC page retirement or row remapping recorded",
	64:  "ECC page retirement or row remapping could not be recorded",
	68:  "video processor exception",
	69:  "graphics engine class error",
	74:  "NVLink error",
	79:  "GPU has fallen off the bus",
	92:  "high single bit ECC error rate",
	94:  "contained ECC error",
	95:  "uncontained ECC error",
	109: "context switch timeout",
	119: "GSP RPC timeout",
	120: "GSP error",
	121: "C2C link corrected error",
	140: "unrecovered ECC error",
	143: "GPU initialisation error",
	154: "GPU recovery action changed",
}

// xidText returns the number of an XID and, if the XID is known, its name.
func xidText(number int) string {
	text := "XID " + strconv.Itoa(number)
	if name := xids[number]; name != "" {
		text += ", " + name
	}
	return text
}

// span is a range of XIDs. It includes both ends.
type span struct{ from, to int }

// buckets has the immediate action of NVIDIA's catalogue for each XID.
var buckets = map[job.XIDBucket][]span{
	job.XIDIgnore: {{37, 38}, {43, 44}, {63, 63}, {66, 67}, {92, 93}, {121, 121}, {137, 137}, {141, 141}, {152, 153}, {157, 157}, {160, 161}},
	job.XIDRestartApp: {{8, 8}, {11, 11}, {13, 13}, {25, 25}, {31, 32}, {39, 41}, {60, 60}, {68, 72}, {75, 77}, {80, 80}, {82, 86}, {88, 89}, {94, 94},
		{96, 105}, {126, 135}, {139, 139}},
	job.XIDResetGPU: {{46, 46}, {62, 62}, {64, 64}, {95, 95}, {109, 110}, {119, 120}, {136, 136}, {140, 140}, {143, 143}, {155, 156}, {158, 158}},
	job.XIDRestart:  {{79, 79}, {151, 151}},
	job.XIDInspect:  {{54, 54}},
	job.XIDUpdate:   {{78, 78}},
	job.XIDWorkflow: {{45, 45}, {48, 48}, {74, 74}, {144, 150}, {154, 154}, {159, 159}},
}

// bucketOf returns the bucket of an XID.
func bucketOf(xid int) job.XIDBucket {
	for bucket, spans := range buckets {
		for _, s := range spans {
			if s.from <= xid && xid <= s.to {
				return bucket
			}
		}
	}
	return job.XIDUnknown
}

// advice says what an XID means for a gang, and what the user should do.
type advice struct {
	severity   job.Severity
	text, hint string
}

// byBucket has the advice for each bucket.
var byBucket = map[job.XIDBucket]advice{
	job.XIDUnknown:    {job.SeverityWarning, "not in NVIDIA's catalogue", "look the number up in NVIDIA's documentation of XID errors, and for NVRM in dmesg"},
	job.XIDIgnore:     {job.SeverityNote, "for information", ""},
	job.XIDRestartApp: {job.SeverityWarning, "the program that uses the GPU fails; the GPU itself need not be broken", "look for an error of the program first; if the same GPU reports it again, leave the GPU out"},
	job.XIDResetGPU:   {job.SeverityError, "the GPU must be reset before it can be used again", "as root: nvidia-smi --gpu-reset -i INDEX, when no program uses the GPU; if it comes again, have the GPU replaced"},
	job.XIDRestart:    {job.SeverityError, "the host must be rebooted before the GPU can be used again", "reboot the host; if it comes again, have the GPU, its slot and its power checked"},
	job.XIDInspect:    {job.SeverityError, "the power supply of the GPU must be checked", "have the power cables of the GPU checked"},
	job.XIDUpdate:     {job.SeverityWarning, "the driver or its firmware must be updated", "have the NVIDIA driver updated"},
	job.XIDWorkflow:   {job.SeverityWarning, "other errors decide what it means", "look for NVRM and Xid in dmesg"},
}

// byNumber has the advice for XIDs for which the advice of their bucket is too general.
var byNumber = map[int]advice{
	13:  {job.SeverityWarning, "as a rule an error of the program, such as an index out of range in a kernel", "run the program with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; if only one GPU reports it, leave the GPU out"},
	31:  {job.SeverityWarning, "as a rule an error of the program: a kernel used an address that is not mapped", "run the program with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; if only one GPU reports it, leave the GPU out"},
	43:  {job.SeverityNote, "the driver has ended a program that had failed; the GPU is well", "look for the error of the program before it"},
	45:  {job.SeverityNote, "the driver cleans up after a program that was ended; with other errors, those count", ""},
	48:  {job.SeverityError, "memory of the GPU is broken; programs that used it have failed", "reset the GPU when no program uses it, so that it replaces the memory: nvidia-smi --gpu-reset; if XID 64 or 95 follow, have the GPU replaced"},
	63:  {job.SeverityNote, "memory of the GPU was broken and is replaced by spare memory at the next reset", "reset the GPU when no program uses it: nvidia-smi --gpu-reset"},
	64:  {job.SeverityError, "memory of the GPU is broken and cannot be replaced by spare memory", "leave the GPU out, and have it replaced"},
	74:  {job.SeverityWarning, "collectives over this link fail or become slow", "run nvidia-smi nvlink -e; if it comes again, have the GPU, the bridge or the switch checked"},
	79:  {job.SeverityError, "the driver can no longer reach the GPU until the host is rebooted", "reboot the host; if it comes again, have the GPU, its slot, its power and its cooling checked"},
	94:  {job.SeverityWarning, "memory of the GPU is broken; only the program that used it fails", "start the program again; reset the GPU when no program uses it"},
	95:  {job.SeverityError, "memory of the GPU is broken; all programs on the GPU fail", "reset the GPU before it is used again: nvidia-smi --gpu-reset, or reboot the host"},
	154: {job.SeverityWarning, "the driver now asks for another action", "nvidia-smi -q shows it as GPU Recovery Action"},
}

// adviceOn returns the advice for an XID.
func adviceOn(xid int) advice {
	if a, known := byNumber[xid]; known {
		return a
	}
	return byBucket[bucketOf(xid)]
}
