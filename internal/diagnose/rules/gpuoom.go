package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const gpuMemoryHint = "use smaller batches or sequences, mixed precision, gradient checkpointing or accumulation, or GPUs with more memory; look for other processes on the GPU"

var gpuOOM = []Rule{{
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.98,
	Meaning: "the GPU's memory is full (PyTorch, CUDA, ROCm)",
	Hint:    gpuMemoryHint,
	Needles: []string{"cuda out of memory", "hip out of memory", "cuda error: out of memory", "cuda_error_out_of_memory", "cudaerrormemoryallocation", "cublas_status_alloc_failed",
		"failure 2 'out of memory'", "failure 'out of memory'", "out of gpu memory", "cudnn_status_alloc_failed", "cudamalloc failed: out of memory", "hiperroroutofmemory", "hip error: out of memory", "no available memory for the cache blocks", "out_of_memory: out of memory", "failed to allocate memory on gpu", "cuda runtime error (2)", "cusolver_status_alloc_failed", "cuda oom", "gpu out of memory", "insufficient gpu memory"},
}, {
	Category: job.GPUOOM, Signature: "cuda-out-of-memory", Confidence: 0.9,
	Hint:    gpuMemoryHint,
	Classes: []string{"OutOfMemoryError", "OutOfGPUMemoryError"},
	Match:   textmatch.New(`(?i)cuda|hip|gpu`),
}, {
	Category: job.GPUOOM, Signature: "xla-resource-exhausted", Confidence: 0.9,
	Meaning: "the GPU's memory is full (TensorFlow, JAX)",
	Hint:    gpuMemoryHint + "; XLA_PYTHON_CLIENT_MEM_FRACTION and memory growth decide how much is taken at the start",
	Needles: []string{"resource_exhausted: out of memory", "oom when allocating tensor", "resource_exhausted: failed to allocate request", "ran out of memory in memory space hbm"},
	Unless:  textmatch.New(`device:CPU|allocator cpu`),
}, {
	Category: job.GPUOOM, Signature: "xla-resource-exhausted", Confidence: 0.85,
	Hint:    gpuMemoryHint,
	Classes: []string{"ResourceExhaustedError"},
}}
