package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var cudaInit = []Rule{{
	Category: job.CUDAInit, Signature: "cuda-init", Confidence: 0.9,
	Meaning: "CUDA could not be initialised on the host",
	Hint:    "look at nvidia-smi and the kernel log of that host; the driver may need a restart, the fabric manager may not run",
	Needles: []string{"cuda error: initialization error", "cuda unknown error - this may be due to an incorrectly set up environment", "unexpected error from cudagetdevicecount", "cuda_error_not_initialized", "cuda error: system not yet initialized",
		"system not yet initialized", "nvswitch fabric", "fabric manager is not running", "failed to bind nvlink sharp", "failed call to cuinit", "cuda initialization: "},
	Unless: textmatch.New(`driver version is insufficient|driver on your system is too old|UserWarning: CUDA initialization: Found no NVIDIA`),
}, {
	Category: job.CUDAInit, Signature: "gpu-busy", Confidence: 0.9,
	Meaning: "another process uses the GPU, which allows only one process",
	Hint:    "look for other processes with nvidia-smi; the compute mode may be exclusive",
	Needles: []string{"devices are busy or unavailable", "cudaerrordevicesunavailable", "device is busy or unavailable"},
}, {
	Category: job.CUDAInit, Signature: "no-gpu", Confidence: 0.9,
	Meaning: "the rank sees no GPU or no driver",
	Hint:    "give the job GPUs (--gpus-per-rank), the container the GPU runtime, and do not overwrite CUDA_VISIBLE_DEVICES",
	Needles: []string{"no cuda-capable device is detected", "found no nvidia driver", "no cuda gpus are available", "no hip gpus are available", "no gpus are available", "hiperrornodevice", "cuda_error_no_device", "no gpu found", "couldn't communicate with the nvidia driver", "failed to initialize nvml"},
}, {
	Category: job.CUDAInit, Signature: "cuda-ordinal", Confidence: 0.95,
	Meaning: "the rank has no GPU with that number",
	Hint:    "a rank sees the gang's GPUs on its host, numbered in the order of LOCAL_RANK, and with --gpu-visibility rank or MIG only its own, from 0: use LOCAL_RANK modulo torch.cuda.device_count()",
	Needles: []string{"invalid device ordinal", "attempting to deserialize object on cuda device", "invalid device id", "cuda_error_invalid_device"},
}}
