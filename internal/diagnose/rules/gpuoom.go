package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const gpuMemoryHint = "use smaller batches or sequences, mixed precision, gradient checkpointing or accumulation, or GPUs with more memory; look for other processes on the GPU"

var gpuOOM = []rule.Rule{{
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.98,
	Meaning: "the GPU's memory is full (PyTorch, CUDA, ROCm)",
	Hint:    gpuMemoryHint,
	Needles: []string{"cuda out of memory", "hip out of memory", "cuda error: out of memory", "cuda_error_out_of_memory", "cudaerrormemoryallocation", "cublas_status_alloc_failed",
		"failure 2 'out of memory'", "failure 'out of memory'", "out of gpu memory", "out of memory error on gpu", "mem-fraction-static", "increase `gpu_memory_utilization", "increasing `gpu_memory_utilization", "cudnn_status_alloc_failed", "cudamalloc failed: out of memory", "hiperroroutofmemory", "hip error: out of memory", "no available memory for the cache blocks", "out_of_memory: out of memory", "failed to allocate memory on gpu", "cuda runtime error (2)", "cusolver_status_alloc_failed", "cuda oom", "gpu out of memory", "insufficient gpu memory", "mps backend out of memory", "npu out of memory", "xpu out of memory", "hpu out of memory", "musa out of memory", "failed to cuda calloc", "failed to cuda malloc", "gpuassert: out of memory", "larger than the available kv cache memory", "rocblas_status_memory_error", "hipblas_status_alloc_failed", "out of device memory", "error on gpu 0. cannot allocate"},
}, {
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.9,
	Hint:    gpuMemoryHint,
	Classes: []string{"OutOfMemoryError", "OutOfGPUMemoryError"},
	Match:   textmatch.New(`(?i)cuda|hip|gpu`),
}, {
	Category: job.GPUOOM, Signature: "xla-resource-exhausted", Confidence: 0.9,
	Meaning: "the GPU's memory is full (TensorFlow, JAX)",
	Hint:    gpuMemoryHint + "; XLA_PYTHON_CLIENT_MEM_FRACTION and memory growth decide how much is taken at the start",
	Needles: []string{"resource_exhausted: out of memory", "oom when allocating tensor", "resource_exhausted: failed to allocate request", "ran out of memory in memory space hbm", "resource_exhausted: attempting to reserve", "resource_exhausted: attempting to allocate", "resource_exhausted: error allocating device buffer", "exceeded hbm capacity"},
	Unless:  textmatch.New(`device:CPU|allocator cpu`),
}, {
	Category: job.GPUOOM, Signature: "xla-resource-exhausted", Confidence: 0.85,
	Hint:    gpuMemoryHint,
	Classes: []string{"ResourceExhaustedError"},
}, {
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.95,
	Hint:    gpuMemoryHint,
	Needles: []string{"out of memory", "out_of_memory", "outofmemory", "memoryspace named"},
	Match:   textmatch.New(`(?i)MemorySpace named "(?:Cuda|HIP|SYCL)\w*" failed|(?:cuda|hip)[ _]?(?:runtime |driver |api )?error\b.{0,200}out of memory|(?:cuda|hip)_?malloc\w*\b.{0,200}out of memory|\bcuMem\w+.{0,100}out.?of.?memory|(?:gpu|device|vram) .{0,40}(?:ran )?out of memory\b|out of memory (?:error )?on (?:gpu|device|the gpu)|hipErrorOutOfMemory|(?:ZE|UR|PI|VK|CL)_\w*OUT_OF_(?:DEVICE_)?(?:HOST_)?MEMORY|rmm::out_of_memory|out of memory at .*\.(?:cu|hip)\b`),
	Unless:  textmatch.New(`(?i)\bwarn|\bretry|reducing|falling back|to avoid|\bINFO\b|HOST_MEMORY|device:CPU|recovered|\bif (?:you|gpu|cuda)`),
}, {
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.9,
	Hint:    gpuMemoryHint,
	Classes: []string{"*", rule.Message},
	Needles: []string{"memoryspace named", "out_of_resources", "memory allocation error on worker", "free memory on device", "gpu memory", "device memory", "vram", "kv cache", "object_allocation_failure", "rmm failure"},
	Match: textmatch.New(`(?i)MemorySpace named "(?:Cuda|HIP|SYCL)|ERROR_OUT_OF_RESOURCES|memory allocation error on worker|free memory on device.{0,100}less than|not enough (?:free )?(?:gpu|device|vram)|(?:allocat\w*|exceed\w*|exhaust\w*|insufficient|run out of|ran out of|full) (?:\S+ ){0,6}(?:gpu memory|device memory|vram)|(?:gpu|device) memory (?:is |was )?(?:exhausted|full|exceeded|allocation (?:failed|error|failure))|` +
		`vram .{0,20}(?:exhausted|exceeded|full)|MEM\w*_OBJECT_ALLOCATION_FAILURE|larger than the maximum number of tokens that can be stored in KV cache|not enough .{0,40}KV cache|rmm failure`),
	Unless: textmatch.New(`(?i)utilization must|must be (?:between|in|less)`),
}}
