package rules

import (
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

const (
	initHint  = "look at nvidia-smi and the kernel log of that host; the driver may need a restart, the fabric manager may not run"
	noGPUHint = "give the job GPUs (--gpus-per-rank), the container the GPU runtime, and do not overwrite CUDA_VISIBLE_DEVICES"
)

var cudaInit = []rule.Rule{{
	Category: job.CUDAInit, Signature: "cuda-init", Confidence: 0.9,
	Meaning: "CUDA could not be initialised on the host",
	Hint:    initHint,
	Needles: []string{"cuda error: initialization error", "cuda unknown error - this may be due to an incorrectly set up environment", "unexpected error from cudagetdevicecount", "cuda_error_not_initialized", "cuda error: system not yet initialized", "system not yet initialized", "nvswitch fabric", "fabric manager is not running", "failed to bind nvlink sharp", "failed call to cuinit", "cuda initialization: ",
		"cuda driver initialization failed", "gpu access blocked by the operating system", "hip error: initialization error", "hiperrornotinitialized", "cudaerrorinitializationerror", "cudaerrorsystemnotready", "cuda_error_system_not_ready"},
	Unless: textmatch.New(`driver version is insufficient|driver on your system is too old|UserWarning: CUDA initialization: Found no NVIDIA`),
}, {
	Category: job.CUDAInit, Signature: "cuda-init", Confidence: 0.9,
	Hint:    initHint,
	Needles: []string{"driver not loaded", "unable to initialize backend", "tpu initialization failed", "failed to initialize the tpu", "failed to initialize tpu", "hsa_init failed", "/dev/kfd", "nvml: unknown error", "cuinit failed", "cuinit(0) failed", "cuinit error", "imex", "fabric manager", "fabricmanager", "zeinit"},
	Match: textmatch.New(`nvml error: driver not loaded|[Uu]nable to initialize backend '(?:cuda|gpu|rocm|tpu|xpu|axon|neuron)'|TPU initialization failed|[Ff]ailed to initialize (?:the )?TPU|hsa_init failed|[Uu]nable to open /dev/kfd|/dev/kfd: (?:Permission denied|No such)|NVML: Unknown Error|cuInit(?:\(0\))? (?:failed|error)|` +
		`(?i:imex (?:daemon|channel|domain).{0,40}(?:fail|not running|unavailable|not ready))|(?i:fabric ?manager.{0,40}(?:is not running|failed to start|inactive|not ready|exited))|zeInit\S* failed`),
	Unless: textmatch.New(`\bINFO\b|^I\d{4} |xla_bridge\.py:\d+\] Unable to initialize backend '(?:tpu|rocm|axon|neuron)'|DEBUG|No visible|already in use|resource busy|insufficient|too old`),
}, {
	Category: job.CUDAInit, Signature: "gpu-busy", Confidence: 0.9,
	Meaning: "another process uses the GPU, which allows only one process",
	Hint:    "look for other processes with nvidia-smi; the compute mode may be exclusive",
	Needles: []string{"devices are busy or unavailable", "cudaerrordevicesunavailable", "device is busy or unavailable", "is/are busy or unavailable", "tpu is already in use", "gpu is already in use", "gpu is in use by another"},
}, {
	Category: job.CUDAInit, Signature: "gpu-busy", Confidence: 0.9,
	Hint:    "look for other processes with nvidia-smi; the compute mode may be exclusive",
	Needles: []string{"/dev/accel", "/dev/vfio/", "/dev/kfd", "/dev/nvidia"},
	Match:   textmatch.New(`/dev/(?:accel|vfio|kfd|nvidia)\S*: Device or resource busy`),
}, {
	Category: job.CUDAInit, Signature: "no-gpu", Confidence: 0.9,
	Meaning: "the rank sees no GPU or no driver",
	Hint:    noGPUHint,
	Needles: []string{"no cuda-capable device is detected", "found no nvidia driver", "no cuda gpus are available", "no hip gpus are available", "no gpus are available", "hiperrornodevice", "cuda_error_no_device", "no gpu found", "couldn't communicate with the nvidia driver", "failed to initialize nvml",
		"no visible gpu devices", "but no platforms that are instances of", "no xpu devices are available", "unknown device id: no device", "requested gpus do not exist", "cudaerrornodevice", "no rocm-capable device", "no npus are available", "can't get ascend"},
	Unless: textmatch.New(`(?i)\b(?:using|use|falling back|fall back|default\w* to|(?:run|train|work|comput|execut|continu|proceed)\w*\b.{0,20}\b(?:on|with)) (?:the |to )*cpu|driver/library version mismatch|^I\d{4} |\bINFO\b`),
}, {
	Category: job.CUDAInit, Signature: "no-gpu", Confidence: 0.85,
	Hint:    noGPUHint,
	Classes: []string{"*", rule.Message},
	Needles: []string{"no gpu", "no cuda", "no hip", "no rocm", "no xpu", "no npu", "no tpu", "no accelerator", "no supported gpu", "no compatible gpu", "no nvidia", "no suitable gpu", "no usable gpu", "no device of requested type", "no devices were found", "cuda is not available", "cuda not available", "cuda is unavailable", "gpu is not available", "gpu not available", "gpu device not found", "cuda device not found", "gpus are not available",
		"requires a gpu", "requires a cuda", "requires at least one gpu", "requires cuda", "cuda.is_available() is false", "device_count() is 0", "device_count() == 0", "no available gpu", "device_not_found", "found 0 gpus", "0 gpus found", "found no gpu", "find any gpu", "find a gpu", "find gpu", "gpu required", "gpus required", "needs a gpu", "cannot access gpu", "cannot find a gpu"},
	Match: textmatch.New(`(?i)\bno (?:supported |compatible |available |suitable |usable |visible |nvidia )?(?:gpus?|cuda|hip|rocm|xpu|npu|tpu|accelerator|nvidia)\b(?: |-capable |\(s\)|devices?|gpus?|accelerators?|drivers?|cards?){0,3} ?(?:were |was |are |is )?(?:found|detected|available|visible|present|accessible|on this)|no (?:\w+ )?(?:gpus?|cuda|hip|xpu|npu|tpu) devices?\b|no device of requested type|no devices were found|` +
		`\b(?:cuda|gpus?|rocm|xpu) (?:is |are |device )*(?:not available|unavailable|not found)|requires (?:a |at least one |an nvidia )?(?:gpu|cuda)\b|is_available\(\) (?:is|returned|==) false|device_count\(\) (?:is|==) 0|DEVICE_NOT_FOUND|found 0 gpus|0 gpus found|find (?:any |a )gpu\b|gpus? required|needs a gpu`),
	Unless: textmatch.New(`(?i)attempting to deserialize|not compiled with|compute capability|out of memory|cuda toolkit|cuda_home|nvcc|version|\bnccl\b|module|import|kernel image|memory`),
}, {
	Category: job.CUDAInit, Signature: "cuda-ordinal", Confidence: 0.95,
	Meaning: "the rank has no GPU with that number",
	Hint:    "a rank sees the gang's GPUs on its host, numbered in the order of LOCAL_RANK, and with --gpu-visibility rank or MIG only its own, from 0: use LOCAL_RANK modulo torch.cuda.device_count()",
	Needles: []string{"invalid device ordinal", "attempting to deserialize object on cuda device", "invalid device id", "cuda_error_invalid_device", "hiperrorinvaliddevice", "cudaerrorinvaliddevice", "device index must be in", "gpu index out of range"},
	Unless:  textmatch.New(`cudaErrorInvalidDevice(?:Function|Pointer)|hipErrorInvalidDevice(?:Function|Pointer)`),
}}
