package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var cudaFailure = []rule.Rule{{
	Category: job.CUDAFailure, Signature: "cuda-launch-failure", Confidence: 0.9,
	Meaning: "a GPU kernel could not be started or did not finish",
	Hint:    "tried elsewhere first; where it comes back, run with CUDA_LAUNCH_BLOCKING=1 to find the kernel",
	Needles: []string{"unspecified launch failure", "illegal instruction was encountered", "hiperrorlaunchfailure", "cuda_error_launch_failed", "the launch timed out and was terminated", "too many resources requested for launch", "cuda error: unknown error", "invalid configuration argument", "cuda error: an unexpected", "cuda error: invalid argument", "cuda error: operation not", "hsa_status_error_exception", "hsa_status_error_illegal_instruction", "hardware exception. code", "blas xgemm launch failed", "blas gemm launch failed", "blas sgemm launch failed", "blas gemv launch failed", "unknown_cuda_error", "cuda error: device kernel image is invalid", "triton error [", "out of resource: shared memory", "ur_result_error_device_lost", "ur_result_error_unknown", "pi_error_unknown", "ze_result_error_device_lost", "ze_result_error_unknown", "hip error: unspecified launch", "hiperrorunknown", "cudaerrorunknown", "cudaerrorlaunchfailure", "cuda runtime error (", "device kernel image is invalid", "acl stream synchronize failed", "graph.launch' failed"},
	Unless:  textmatch.New(`(?i)runtime error \((?:2|77|59|700|710|209|48|8|35|38|46|10|101|100|3)\)|illegal (?:memory )?address|illegal memory|device-side assert triggered|invalid device function|unsupported toolchain|no kernel image|out of memory|out of resource: shared memory`),
}, {
	Category: job.CUDAFailure, Signature: "cuda-library", Confidence: 0.85,
	Meaning: "cuBLAS, cuDNN, cuFFT or another CUDA library failed",
	Hint:    "tried elsewhere first; a full GPU memory shows this too; compare the library's version with the one the program was built for",
	Needles: []string{"cublas_status_execution_failed", "cublas_status_internal_error", "cublas_status_not_initialized", "cublas_status_invalid_value", "cublas_status_not_supported", "cudnn_status_execution_failed", "cudnn_status_internal_error",
		"cudnn_status_not_initialized", "cudnn_status_mapping_error", "cudnn_status_not_supported", "cufft_internal_error", "failed to get convolution algorithm", "unable to find a valid cudnn algorithm", "unable to find an engine to execute this computation", "cudnn frontend error", "cudnn error: ", "no execution plans support the graph", "no valid execution plans", "miopenstatus", "hipblas_status_", "rocblas_status_", "hipfft_", "rocsolver_status", "cudnn_status_arch_mismatch", "cudnn_status_bad_param", "cublas_status_mapping_error", "cublas_status_arch_mismatch", "cufft_invalid", "cufft_setup_failed", "cudnn_status_internal", "cublaslt", "cusolver_status_execution_failed", "failed to initialize cudnn", "could not create cudnn handle", "failed to create cublas handle", "miopen error", "onemkl", "could not create a primitive", "cufft_exec_failed", "cusolver_status_internal_error", "cusparse_status"},
	Match:  textmatch.New(`(?P<artefact>(?:CU|HIP|ROC)(?:BLAS|DNN|FFT|SOLVER|SPARSE)_[A-Z_]+|rocblas_status_\w+|miopenStatus(?:[A-RT-Z]|U)\w+)|[Ff]ailed to get convolution algorithm|[Uu]nable to find a valid cuDNN algorithm|unable to find an engine to execute|cuDNN Frontend error|cuDNN error: |No (?:valid )?execution plans|[Cc]ould not create cudnn handle|[Ff]ailed to (?:create cublas handle|initialize cuDNN)|cublasLt\w* (?:failed|error)|oneMKL.*(?:fail|error)|could not create a primitive|MIOpen Error`),
	Unless: textmatch.New(`STATUS_(?:ALLOC_FAILED|SUCCESS)|miopenStatusSuccess|rocblas_status_success|cudnn version incompatib|MIOpen\(HIP\): Warning|\bWARNING\b|rocblas_status_memory_error`),
}, {
	Category: job.CUDAFailure, Signature: "nccl-cuda", Confidence: 0.8,
	Meaning: "NCCL, or a CUDA call inside NCCL, failed",
	Hint:    "run with NCCL_DEBUG=INFO to see the call; compare the driver's and NCCL's versions on every host",
	Needles: []string{"unhandled cuda error", "ncclunhandledcudaerror", "ncclinternalerror", "nccl warn cuda failure", "internal error - please report this issue to the nccl"},
}, {
	Category: job.CUDAFailure, Signature: "cuda-error", Confidence: 0.75,
	Meaning: "any other CUDA error",
	Hint:    "tried elsewhere first; where it comes back, run with CUDA_LAUNCH_BLOCKING=1 to find the call",
	Classes: []string{"*"},
	Needles: []string{"cuda error: ", "cuda failure", "cuda_error_", "hip error: "},
	Unless: textmatch.New(`(?i)out of memory|no kernel image|invalid device ordinal|device-side assert triggered|initialization error|no cuda-capable|uncorrectable|ECC|driver version|illegal|misaligned|launch|` +
		`busy or unavailable|unsupported toolchain|unsupported display driver|unknown error|invalid configuration|invalid argument|operation not|not_initialized|CUDA_ERROR_(?:ASSERT|INVALID_DEVICE|NO_DEVICE|NO_BINARY)|NVLink`),
}, {
	Category: job.CUDAFailure, Signature: "xid-application", Confidence: 0.8, Traits: rule.Kernel,
	Meaning: "the driver reports a fault of a program on the GPU (XID 13, 31, 43, 45, 68, 69, 109 and similar ones)",
	Hint:    "mostly the program's own fault: run compute-sanitizer on it; where it follows the GPU, have it tested",
	Text:    "the GPU driver reported a fault in the rank's work (${title})",
	Needles: []string{"nvrm: xid "},
	Match:   xid("(?:8|11|13|25|31|32|39|40|41|68|69|80),"),
}, {
	Category: job.CUDAFailure, Signature: "cuda-library", Confidence: 0.7, Traits: rule.Generic,
	Hint:    "look at the messages above it: a full GPU memory and a cuDNN of another version show this",
	Needles: []string{"dnn library initialization failed", "dnn library is not found", "could not create cudnn handle"},
	Unless:  textmatch.New(`\bINFO\b|^W\d{4} `),
}}
