package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var cudaVersion = []rule.Rule{{
	Category: job.CUDAVersion, Signature: "driver-too-old", Confidence: 0.95,
	Meaning: "the driver is too old for the CUDA that the program was built with",
	Hint:    "install a build for the CUDA version that the driver knows (nvidia-smi shows it), or update the driver on every host",
	Needles: []string{"driver version is insufficient for cuda runtime version", "nvidia driver on your system is too old", "forward compatibility was attempted", "unsupported display driver / cuda driver combination", "unsupported toolchain", "cudaerrorinsufficientdriver", "cuda driver version is insufficient", "driver too old", "unsatisfied condition: cuda>", "please update your driver to a newer version"},
}, {
	Category: job.CUDAVersion, Signature: "no-kernel-image", Confidence: 0.95,
	Meaning: "the program has no code for this kind of GPU",
	Hint:    "build or install it for the GPU's compute capability (TORCH_CUDA_ARCH_LIST), or use other GPUs",
	Needles: []string{"no kernel image is available for execution", "cudaerrornokernelimagefordevice", "cuda_error_no_binary_for_gpu", "hiperrornobinaryforgpu", "unable to find code object for all current devices", "hip error: invalid device function", "cuda error: invalid device function", "hiperrorinvaliddevicefunction", "cudaerrorinvaliddevicefunction", "unsupported gpu architecture", "a ptx jit compilation failed", "cudaerrorinvalidptx"},
}, {
	Category: job.CUDAVersion, Signature: "cuda-mismatch", Confidence: 0.9,
	Meaning: "two parts of the program were built for different CUDA versions",
	Hint:    "build the extension with the CUDA that the framework was built with",
	Needles: []string{"mismatches the version that was used to compile", "compiled with different cuda major versions", "cudnn version incompatibility", "needs to have matching major version and equal or higher minor version", "cudnn_status_version_mismatch", "cudnn_status_sublibrary_version_mismatch"},
	Find:    textmatch.New(`CUDA version \((?P<artefact>[\d.]+)\)`),
}, {
	Category: job.CUDAVersion, Signature: "no-cuda-build", Confidence: 0.95,
	Meaning: "the framework was built without CUDA",
	Hint:    "install the build with CUDA on every host",
	Needles: []string{"not compiled with cuda", "was not built with gpu support", "not compiled with gpu support"},
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
	Needles: []string{"mismatched nccl version", "nccl version mismatch", "mismatched rccl version"},
}, {
	Category: job.CUDAVersion, Signature: "driver-mismatch", Confidence: 0.9,
	Meaning: "the driver's kernel module and its library are of different versions: it was updated while the host ran",
	Hint:    "reboot the host, or load the driver's kernel module again",
	Needles: []string{"driver/library version mismatch", "rm version mismatch", "is not compatible with the current pytorch installation", "cuda_error_system_driver_mismatch", "cuda_error_compat_not_supported", "ptx was compiled with an unsupported toolchain", "cudaerrorunsupportedptxversion", "cuda driver version is insufficient"},
}, {
	Category: job.CUDAVersion, Signature: "no-kernel-image", Confidence: 0.9,
	Hint:    "build or install it for the GPU's compute capability (TORCH_CUDA_ARCH_LIST), or use other GPUs",
	Classes: []string{"*", rule.Message},
	Needles: []string{"compute capability", "only supports ampere", "only supports hopper", "only supports blackwell", "option 'gpu-name'", "option 'gpu-architecture'", "tensile", "not supported on this gpu", "not supported on this architecture", "gpu arch"},
	Match: textmatch.New(`(?i)only supports (?:ampere|hopper|blackwell)|only supported on .{0,60}compute capability|requires? .{0,60}compute capability|compute capability .{0,60}(?:not supported|unsupported|too low|required|but your)|not supported .{0,40}compute capability|is not defined for option 'gpu-|no .*tensile.* for|not supported on this (?:gpu|architecture)|unsupported gpu arch|` +
		`cannot read \S*TensileLibrary|gpu arch\w* \S+ (?:is )?(?:not supported|unsupported)`),
}, {
	Category: job.CUDAVersion, Signature: "no-cuda-build", Confidence: 0.9,
	Hint:    "install the build with CUDA on every host",
	Classes: []string{"*", rule.Message},
	Needles: []string{"without cuda", "without gpu", "not built with", "not compiled with", "not linked with", "compiled without", "built without", "the 'cuda' backend", "'cuda' backend", "no gpu support", "without hip", "without rocm", "cuda support"},
	Match:   textmatch.New(`(?i)(?:built|compiled|configured|installed) without (?:\w+ )?(?:cuda|gpu|hip|rocm|sycl)|not (?:built|compiled|linked) with (?:support for )?(?:cuda|gpu|hip|rocm|xpu|nccl)|(?:no|not|without) (?:with )?(?:cuda|gpu) support|with arguments from the 'CUDA' backend|not compiled with NCCL`),
	Unless:  torchWithoutCUDA,
}}

var torchWithoutCUDA = textmatch.New(`(?i)torch not compiled with cuda enabled|module 'torch\._C' has no attribute '_cuda`)
