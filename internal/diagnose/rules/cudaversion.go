package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var cudaVersion = []Rule{{
	Category: job.CUDAVersion, Signature: "driver-too-old", Confidence: 0.95,
	Meaning: "the driver is too old for the CUDA that the program was built with",
	Hint:    "install a build for the CUDA version that the driver knows (nvidia-smi shows it), or update the driver on every host",
	Needles: []string{"driver version is insufficient for cuda runtime version", "nvidia driver on your system is too old", "forward compatibility was attempted", "unsupported display driver / cuda driver combination", "unsupported toolchain", "cudaerrorinsufficientdriver", "cuda driver version is insufficient", "driver too old"},
}, {
	Category: job.CUDAVersion, Signature: "no-kernel-image", Confidence: 0.95,
	Meaning: "the program has no code for this kind of GPU",
	Hint:    "build or install it for the GPU's compute capability (TORCH_CUDA_ARCH_LIST), or use other GPUs",
	Needles: []string{"no kernel image is available for execution", "cudaerrornokernelimagefordevice", "cuda_error_no_binary_for_gpu"},
}, {
	Category: job.CUDAVersion, Signature: "cuda-mismatch", Confidence: 0.9,
	Meaning: "two parts of the program were built for different CUDA versions",
	Hint:    "build the extension with the CUDA that the framework was built with",
	Needles: []string{"mismatches the version that was used to compile"},
	Match:   textmatch.New(`CUDA version \((?P<artefact>[\d.]+)\)`),
}, {
	Category: job.CUDAVersion, Signature: "no-cuda-build", Confidence: 0.95,
	Meaning: "the framework was built without CUDA",
	Hint:    "install the build with CUDA on every host",
	Needles: []string{"not compiled with cuda", "distributed package doesn't have nccl", "was not built with gpu support", "not compiled with gpu support"},
	Unless:  torchWithoutCUDA,
}, {
	Category: job.CUDAVersion, Signature: "no-cuda-build", Confidence: 0.95,
	Hint:    "this PyTorch has no CUDA: install its build with CUDA on every host, or have the program use the CPU where torch.cuda.is_available() is false",
	Needles: []string{"torch not compiled with cuda enabled", "module 'torch._c' has no attribute '_cuda"},
	Match:   torchWithoutCUDA,
}, {
	Category: job.CUDAVersion, Signature: "nccl-version-mismatch", Confidence: 0.9,
	Meaning: "the ranks have different versions of NCCL",
	Hint:    "use the same environment or image on every host",
	Needles: []string{"mismatched nccl version", "nccl version mismatch"},
}, {
	Category: job.CUDAVersion, Signature: "driver-mismatch", Confidence: 0.9,
	Meaning: "the driver's kernel module and its library are of different versions: it was updated while the host ran",
	Hint:    "reboot the host, or load the driver's kernel module again",
	Needles: []string{"driver/library version mismatch", "is not compatible with the current pytorch installation", "cuda_error_system_driver_mismatch", "cuda_error_compat_not_supported", "ptx was compiled with an unsupported toolchain", "cudaerrorunsupportedptxversion", "cuda driver version is insufficient"},
}}

var torchWithoutCUDA = textmatch.New(`(?i)torch not compiled with cuda enabled|module 'torch\._C' has no attribute '_cuda`)
