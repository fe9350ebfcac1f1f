package reason

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// gpuFault is one kind of error of the runtimes of CUDA and HIP.
type gpuFault struct {
	signature string
	numbers   []int
	// what matches the names of the error, without their prefix, and the runtimes' messages about it.
	what *textmatch.Pattern
}

var gpuFaults = []gpuFault{
	{"cuda-out-of-memory", []int{2}, textmatch.New(`(?i)out[ _]?of[ _]?memory|MemoryAllocation\b`)},
	{"cuda-ecc", []int{214}, textmatch.New(`(?i)uncorrectable (?:ECC|NVLink)|ECC_?UNCORRECTABLE|NVLINK_?UNCORRECTABLE`)},
	{"no-kernel-image", []int{8, 48, 98, 209, 218, 222}, textmatch.New(`(?i)no kernel image|NoKernelImage|NO_BINARY_FOR_GPU|NoBinaryForGpu|invalid device function|InvalidDeviceFunction|INVALID_PTX|UnsupportedPtx|UNSUPPORTED_PTX`)},
	{"driver-too-old", []int{35, 804}, textmatch.New(`(?i)driver version is insufficient|InsufficientDriver|forward compatibility was attempted`)},
	{"driver-mismatch", []int{803}, textmatch.New(`(?i)unsupported display driver|DRIVER_?MISMATCH`)},
	{"no-gpu", []int{38, 100}, textmatch.New(`(?i)no (?:cuda|rocm|hip)-capable device|ERROR_?NO_?DEVICE\b`)},
	{"cuda-ordinal", []int{10, 101}, textmatch.New(`(?i)invalid device ordinal|ERROR_?INVALID_?DEVICE\b`)},
	{"gpu-busy", []int{46}, textmatch.New(`(?i)devices?(?:\(s\))? (?:is/)?(?:are|is) busy|DevicesUnavailable|DEVICE_UNAVAILABLE`)},
	{"cuda-init", []int{3, 802}, textmatch.New(`(?i)initialization error|InitializationError|NOT_INITIALIZED|system not yet initialized|SystemNotReady|SYSTEM_NOT_READY`)},
	{"device-assertion", []int{59, 710}, textmatch.New(`(?i)device-side assert|ERROR_?ASSERT\b`)},
	{"cuda-illegal-access", []int{77, 700, 716, 717, 718}, textmatch.New(`(?i)illegal (?:memory )?(?:access|address)|IllegalAddress|ILLEGAL_ADDRESS|misaligned ?_?address|InvalidAddressSpace|INVALID_ADDRESS_SPACE|InvalidPc\b|invalid program counter`)},
	{"cuda-launch-failure", []int{1, 4, 6, 7, 9, 13, 30, 701, 702, 714, 715, 719, 999}, textmatch.New(`(?i)launch ?failure|LaunchFail|LAUNCH_(?:FAILED|TIMEOUT|OUT_OF)|launch timed out|LaunchTimeout|too many resources requested|LaunchOutOfResources|illegal ?_?instruction|hardware ?_?stack ?_?error|invalid configuration|InvalidConfiguration|unknown error\b|ERROR_?UNKNOWN\b|invalid (?:argument|resource handle|value)|ERROR_?INVALID_(?:VALUE|HANDLE|CONTEXT)|ErrorInvalid(?:Value|ResourceHandle|Context)`)},
}

var (
	// onGPU matches messages about what a program does on a GPU.
	onGPU = textmatch.New(`(?i)\b(?:cuda|hip|gpu)\w*|\bcu[A-Z]\w+\(|\w\.(?:cuh?|hip)\b|(?:gpu|device) (?:kernel|memory|buffer)`)
	// gpuNumber matches the number of a GPU error.
	gpuNumber = textmatch.New(`(?i)\b(?:cuda|hip|gpu)\w*\b[^\d]{0,60}?(?:\b(?:errors?|err|code|status|rc|returned|failed|failure)\b|cudaError_t)\W{0,6}(?:code|number|status|with|error)?\W{0,4}(?:code|error)?\W{0,3}(\d{1,3})\b|\b(?:cuda|hip)[A-Z]\w+\([^)]*\) ?(?:=+|->|returned|gave) ?(\d{1,3})\b|(?:\.cuh?|\.hip)\b.{0,60}\b(?:code|error|err)\W{0,3}(\d{1,3})\b`)
)

// OfGPU is like Of for errors that the runtimes of CUDA and HIP return, as programs show them in their own messages.
func OfGPU(text string) string {
	if !onGPU.MatchString(text) {
		return ""
	}
	for _, f := range gpuFaults {
		if f.what.MatchString(text) {
			return f.signature
		}
	}
	if m := gpuNumber.FindStringSubmatch(text); m != nil {
		n := logtext.Number(strings.Join(m[1:], ""))
		for _, f := range gpuFaults {
			for _, k := range f.numbers {
				if k == n {
					return f.signature
				}
			}
		}
	}
	return ""
}
