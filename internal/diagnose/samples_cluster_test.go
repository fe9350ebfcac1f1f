package diagnose

// These are samples of what GPUs, networks, hosts, batch systems and supervising programs report.
func init() {
	for signature, s := range map[string]struct{ yes, no []string }{
		"cuda-ecc": {
			yes: []string{
				"[rank3]: " + raise("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"),
				"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
				"Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU",
				raise("pynvml.NVMLError_GpuIsLost: GPU is lost"),
			},
			no: []string{"Volatile Uncorr. ECC | 0", "0 uncorrectable ECC errors on GPU 3"},
		},
		"xid-fallen-off-bus": {
			yes: []string{"kernel: Mar  4 02:11:09 gpu-07 kernel: [1203984.112] NVRM: Xid (PCI:0000:9b:00): 119, pid=4071838, name=python, Timeout after 45s of waiting for RPC response from GPU4 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20801702 0x4)."},
			no:  []string{"kernel: NVRM: GPU4 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949"},
		},
		"xid-recovery": {
			yes: []string{
				"kernel: NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
				"kernel: 192.168.11.119: kern: warning: [2026-04-22T21:30:51.870495804Z]: NVRM: Xid (PCI:0000:0b:00): 154, pid=77, name=python, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
			},
			no: []string{"kernel: NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"},
		},
		"gpu-reset": {
			yes: []string{
				"kernel: amdgpu 0000:67:00.0: amdgpu: socket: 0, die: 0 1 uncorrectable hardware errors detected in umc block",
				"kernel: amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!",
				"kernel: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.0 timeout, signaled seq=502589, emitted seq=502591",
				"kernel: amdgpu 0000:1b:00.0: amdgpu: device lost from bus!",
				"kernel: xe 0000:4d:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:4d:00.0 as wedged.",
				"kernel: NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC timeout detected! GPU marked for reset @ kernel_gsp.c:2387",
			},
			no: []string{"kernel: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered", "kernel: amdgpu 0000:c1:00.0: amdgpu: ring comp_1.1.1 uses VM inv eng 9 on hub 0", "kernel: amdgpu 0000:c1:00.0: amdgpu: GPU reset succeeded, trying to resume"},
		},
		"nvswitch-fatal": {
			yes: []string{
				"kernel: nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error (First)",
				"kernel: pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0",
			},
			no: []string{"kernel: nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 11004, Non-fatal, Link 32 Ingress invalid ACL", "kernel: pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0"},
		},
		"gpu-reported-sick": {
			yes: []string{
				"dcgmi health: Error: GPU 3: Detected 2 DBE volatile ECC errors. Drain the GPU and reset it or reboot the node.",
				"Warning  NodeProblem  gpu-operator: XidErrorCritical on GPU-8f33: Xid=79",
				"[prolog] DCGM diag on n07: GPU 3 memtest Fail",
				"HW Exception by GPU node-2 (Agent handle: 0x55d3a8) reason :GPU Hang",
				"health-monitor: Xid 79 on GPU-e2b7d6e5-6f4e-1f0a-1a4b-4f5c6a7b8c9d, draining n07",
				raise("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: TPU core dump: Core halted unexpectedly: HBM UECC"),
			},
			no: []string{"GPU health check passed on all 8 GPUs", "Row remapping pending: No", "    DRAM Uncorrectable            : 0", "Xid errors: 0"},
		},
		"cuda-init": {
			yes: []string{
				raise("RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu."),
				raise("RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Failed to get global TPU topology. (set JAX_PLATFORMS='' to automatically choose an available backend)"),
				"nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
				"Failed to initialize NVML: GPU access blocked by the operating system",
			},
			no: []string{"INFO:2025-01-02 03:04:05,123:jax._src.xla_bridge:925: Unable to initialize backend 'rocm': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'"},
		},
		"gpu-busy": {
			yes: []string{
				raise("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
				raise("RuntimeError: TPU initialization failed: The TPU is already in use by process with pid 12345. Not attempting to load libtpu.so in this process."),
				raise("RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: TPU initialization failed: open(/dev/vfio/0): Device or resource busy."),
			},
			no: []string{"cp: /data/x: Device or resource busy"},
		},
		"no-gpu": {
			yes: []string{
				raise("RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. (you may need to uninstall the failing plugin package, or set JAX_PLATFORMS=cpu to skip this backend.)"),
				raise("RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu"),
				raise("RuntimeError: No XPU devices are available."),
				"ERROR: No GPU devices found for local rank 3; CUDA_VISIBLE_DEVICES=0,1,2",
				"terminate called after throwing an instance of 'sycl::_V1::exception'\n  what():  No device of requested type available.",
			},
			no: []string{"No GPU detected, falling back to CPU", "WARNING: No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)"},
		},
		"cuda-ordinal": {
			yes: []string{raise("RuntimeError: HIP error: invalid device ordinal"), "GPU 2: cudaSetDevice(): 'cudaErrorInvalidDevice': invalid device ordinal"},
			no:  []string{"the ordinal of the device is valid"},
		},
		"cuda-launch-failure": {
			yes: []string{
				":0:rocdevice.cpp            :2984: 1234567 us: [pid:123 tid:0x7f] Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016",
				raise("numba.cuda.cudadrv.driver.CudaAPIError: [719] Call to cuCtxSynchronize results in UNKNOWN_CUDA_ERROR"),
				raise("tensorflow.python.framework.errors_impl.InternalError: Blas xGEMM launch failed : a.shape=[1,1024,512], b.shape=[1,512,512], m=1024, n=512, k=512 [Op:MatMul]"),
				"terminate called after throwing an instance of 'sycl::_V1::exception'\n  what():  Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
				"GPUassert: unspecified launch failure solver.cu 412",
			},
			no: []string{raise("RuntimeError: CUDA error: no kernel image is available for execution on the device")},
		},
		"cuda-library": {
			yes: []string{
				raise("RuntimeError: GET was unable to find an engine to execute this computation"),
				raise("RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: No execution plans support the graph."),
				raise("RuntimeError: miopenStatusUnknownError"),
				raise("RuntimeError: CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasSgemm( handle, opa, opb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)`"),
				raise("tensorflow.python.framework.errors_impl.UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking to see if a warning log message was printed above. [Op:Conv2D]"),
			},
			no: []string{"MIOpen(HIP): Warning [IsEnoughWorkspace] [GetSolutionsFallback WTI] Solver <GemmFwdRest>, workspace required: 1073, provided ptr: 0 size: 0", "Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered"},
		},
		"driver-too-old": {
			yes: []string{"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update your driver to a newer version, or use an earlier cuda container: unknown"},
			no:  []string{"driver version 550.54.15, CUDA 12.4"},
		},
		"no-kernel-image": {
			yes: []string{
				"\"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!\"",
				raise("RuntimeError: HIP error: invalid device function"),
				raise("RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
				raise("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100-SXM2-32GB GPU has compute capability 7.0."),
				"ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'",
			},
			no: []string{"FlashAttention only supports Ampere GPUs or newer, falling back to eager attention", "NVIDIA GeForce GTX 980 with CUDA capability sm_52 is not compatible with the current PyTorch installation."},
		},
		"cuda-mismatch": {
			yes: []string{
				raise("RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions. PyTorch has CUDA Version=12.4 and torchvision has CUDA Version=11.8."),
				raise("RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found runtime version (8, 9, 2). PyTorch already comes bundled with cuDNN."),
			},
			no: []string{"PyTorch has CUDA Version=12.4"},
		},
		"no-cuda-build": {
			yes: []string{raise("NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."), "ERROR: GPU package was built without CUDA support (src/GPU/fix_gpu.cpp:77)"},
			no:  []string{"Kokkos compiled without GPU support, running on CPU"},
		},
		"nccl-version-mismatch": {
			yes: []string{"gpu02:1:1 [0] NCCL WARN Mismatched NCCL version detected : rank 0 version 22005 (sm 80) rank 8 version 22103"},
			no:  []string{"gpu02:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4"},
		},
		"driver-mismatch": {
			yes: []string{"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54"},
			no:  []string{"NVML library version: 550.54"},
		},
		"cuda-out-of-memory": {
			yes: []string{
				raise("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 48.00 GiB."),
				raise("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.96 GiB total capacity; 55 GiB already allocated)"),
				raise("ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (4.5 GiB)."),
				"FATAL ERROR: CUDA error cudaMalloc((void **)&ptr, size) in file src/CudaUtils.C, function allocate_device_T, line 88: out of memory",
				"ERROR: Kokkos failed to allocate memory for label \"atom:x\".  Allocation using MemorySpace named \"Cuda\" failed with the following error:  Allocation of size 8 G failed, likely due to insufficient memory.",
				"gpu01:1:2 [0] include/alloc.h:120 NCCL WARN Failed to CUDA calloc async 10485760 bytes",
				raise("RuntimeError: Native API failed. Native API returns: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)"),
				"GPUassert: out of memory solver.cu 41",
			},
			no: []string{"GPU memory: allocated 30.1 GiB, reserved 40 GiB, free 39 GiB", raise("ValueError: gpu_memory_utilization must be between 0 and 1, GPU memory")},
		},
		"xla-resource-exhausted": {
			yes: []string{raise("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to reserve 12.32G at the bottom of memory. That was not possible. There are 9.2G free, 0B reserved, and 9.2G reservable.")},
			no:  []string{raise("grpc.RpcError: RESOURCE_EXHAUSTED: Received message larger than max")},
		},
		"nccl-timeout": {
			yes: []string{"[rank5]:[E ProcessGroupHCCL.cpp:500] [Rank 5] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=88, OpType=ALLREDUCE, Timeout(ms)=1800000)"},
			no:  []string{"[rank2]:[E0517 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 2] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.26.2"},
		},
		"rendezvous-timeout": {
			yes: []string{
				raise("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for workers. 7/8 workers joined."),
				raise("ray.train.v2._internal.exceptions.WorkerGroupStartupTimeoutError: The worker group startup timed out after 30.0 seconds waiting for 8 workers."),
			},
			no: []string{"7/8 workers joined, waiting"},
		},
		"collective-timed-out": {
			yes: []string{
				raise("TimeoutError: allreduce did not complete within 600 seconds on rank 2: waiting for rank 5"),
				raise("RuntimeError: halo exchange timed out after 60 s"),
				"ERROR: barrier 'epoch-3' timed out after 600 s, waiting for rank 5",
			},
			no: []string{"waiting at barrier (timeout 600 s)", "collective timeout set to 1800 s", raise("ValueError: the barrier timeout must be positive")},
		},
		"jax-timeout": {
			yes: []string{"F0102 external/xla/xla/service/rendezvous.cc:76] Termination timeout for `thunk initialization completion for device ordinal 3; run_id=12` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 8 threads to join the rendezvous, but not all of them arrived on time."},
			no:  []string{"E external/xla/xla/service/rendezvous.cc:46] Thread is unstuck! Warning above was a false-positive. Perhaps the timeout is too short."},
		},
		"desync-report": {
			yes: []string{
				"[rank0]:[E ProcessGroupNCCL.cpp:1] \t - [1] finished collective #5, but didn't join collective #6 (count from 1)",
				"[rank0]:[E ProcessGroupNCCL.cpp:1]  - ranks [3] are the lagging ranks that caused this timeout. They never joined any collectives",
				"  Rank 21 -- GPU 5 managed by process 88123 on node 10.9.0.23",
			},
			no: []string{"[rank0]:[E ProcessGroupNCCL.cpp:1] \t - [0] joined but didn't finish collective #6 (count from 1)", "  31 ranks have launched up to operation 6650"},
		},
		"horovod-stall": {
			yes: []string{"[2022-07-20 04:51:42.894382: E horovod/common/stall_inspector.cc:100] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 600 seconds. Will shutdown.", "Stalled ranks:\n2: [HorovodAllreduce_grad_0]\nstall shutdown"},
			no:  []string{"HOROVOD_STALL_CHECK_TIME_SECONDS=60"},
		},
		"store-unreachable": {
			yes: []string{raise("torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (node0, 29500)."), raise("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.")},
			no:  []string{"[W socket.cpp:697] [c10d] The client socket has failed to connect to [node0]:29500 (errno: 97 - Address family not supported by protocol)."},
		},
		"nccl-network": {
			yes: []string{
				"gpu01:97:221 [0] NCCL WARN Bootstrap : no socket interface found",
				"gpu01:97:221 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort",
				"gpu01:97:221 [0] misc/socket.cc:441 NCCL WARN socketFinalizeAccept: wrong type 4 != 3",
				"gpu01:97:221 [2] process_completions:1021 NCCL WARN NET/OFI Request 0x7f2f completed with error. RC: 5. Error: 15 (Unresponsive receiver)",
			},
			no: []string{"gpu01:97:221 [0] NCCL INFO NET/IB : No device found.", "gpu01:97:221 [0] NCCL INFO socketPollConnect: connect returned Connection timed out, retrying (1/34) after sleep for 100 msec"},
		},
		"nccl-remote-error": {
			yes: []string{"terminate called after throwing an instance of 'c10::DistBackendError'", "[rank2]:[E0517 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 2] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.26.2"},
			no:  []string{"terminate called after throwing an instance of 'std::runtime_error'"},
		},
		"unreachable": {
			yes: []string{raise("RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find interface for: [ib9]"), "n1.4312 PSM2 no hfi units are active (err=23)"},
			no:  []string{"using interface ib0"},
		},
		"connect-failed": {
			yes: []string{
				raise("TimeoutError: Could not connect to the scheduler tcp://10.0.0.5:8786 after 30 s"),
				raise("OSError: Timed out trying to connect to tcp://10.0.0.5:8786 after 30 s"),
				raise("RuntimeError: Failed to connect to GCS at 10.0.0.5:6379"),
				"ERROR: cannot connect to the coordinator at head:4000",
			},
			no: []string{"Failed to connect to scheduler at tcp://10.0.0.5:8786, trying again", raise("RuntimeError: cannot connect layers 3 and 4"), raise("RuntimeError: cannot connect to X11 display :0")},
		},
		"http": {
			yes: []string{
				raise("botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: \"https://s3.amazonaws.com/b\""),
				raise("distributed.comm.core.CommClosedError: in <TCP (closed) ConnectionPool.heartbeat_worker local=tcp://10.0.0.7:1>: Stream closed"),
				raise("RuntimeError: mirror answered: 502 Bad Gateway"),
				raise("RuntimeError: certificate has expired"),
				raise("kafka.errors.NoBrokersAvailable: NoBrokersAvailable"),
			},
			no: []string{raise("tarfile.ReadError: not a gzip file"), "503 samples, service unavailable to none"},
		},
		"database-unreachable": {
			yes: []string{
				raise("psycopg2.OperationalError: connection to server at \"db01\" (10.0.0.9), port 5432 failed: FATAL:  sorry, too many clients already"),
				raise("sqlalchemy.exc.OperationalError: (pymysql.err.OperationalError) (2003, \"Can't connect to MySQL server on 'db' (timed out)\")"),
			},
			no: []string{raise("psycopg2.OperationalError: connection to server at \"db01\", port 5432 failed: FATAL:  password authentication failed for user \"ana\""), raise("sqlite3.OperationalError: no such table: runs")},
		},
		"socket-timeout": {
			yes: []string{raise("TimeoutError: timed out"), raise("TimeoutError: The read operation timed out"), raise("zmq.error.Again: Resource temporarily unavailable")},
			no:  []string{raise("TimeoutError: the solver took too long")},
		},
		"download-failed": {
			yes: []string{"curl: (28) Failed to connect to data.example.org port 443 after 130000 ms: Couldn't connect to server", "rsync error: timeout in data send/receive (code 30) at io.c(197)"},
			no:  []string{"[W socket.cpp:697] [c10d] The client socket has failed to connect to [node0]:29500 (errno: 97 - Address family not supported by protocol).", "curl: (22) The requested URL returned error: 404"},
		},
		"link-down": {
			yes: []string{
				"kernel: mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, Bus stuck (I2C or data shorted)",
				"kernel: bnxt_en 0000:5e:00.0 ens1: NIC Link is Down",
				"kernel: mlx5_core 0000:5e:00.0: health compromised - reached miss count",
			},
			no: []string{"kernel: mlx5_core 0000:5e:00.0 ens1f0np0: Link up"},
		},
		"ssh-failed": {
			yes: []string{"kex_exchange_identification: Connection closed by remote host"},
			no:  []string{"ssh n07 true", "Host key verification failed."},
		},
		"host-reported-lost": {
			yes: []string{
				"[2025-01-01T00:00:00.000] error: Nodes cn104 not responding, setting DOWN",
				"=>> PBS: job killed: node n07 is down",
				"job.exception type=node-failure severity=0 lost contact with job shell on node7",
				"  Ready            Unknown   Mon, 01 Jan 2025 NodeStatusUnknown   Kubelet stopped posting node status.",
				"E0801 11:26:50 coordination_service.cc:1051] The following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:5",
				raise("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task. The actor died because its node has died."),
				"01:01:50 Node unresponsive: ping to tr0 (10.5.5.1) failed 5 times",
			},
			no: []string{"node n07 rebooted 12 days ago, uptime 12 days", "node.kubernetes.io/unreachable:NoExecute op=Exists for 300s", "database server is down, using the local cache"},
		},
		"kernel-panic": {
			yes: []string{"kernel: Kernel panic - not syncing: Fatal machine check", "kernel: EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "kernel: Oops: 0000 [#1] SMP NOPTI"},
			no:  []string{"kernel: EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "kernel: mce: [Hardware Error]: Machine check events logged"},
		},
		"host-rebooted": {
			yes: []string{"kernel: [    0.000000] Linux version 6.8.0-45-generic (buildd@lcy02) #45-Ubuntu SMP"},
			no:  []string{"kernel: systemd[1]: Starting systemd-journald.service"},
		},
		"slurm-preempted": {
			yes: []string{
				"Warning  Preempted  1s  default-scheduler  Preempted by pod 1234 on node n07",
				"Normal   Preempted   Preempted to accommodate a workload (UID: 12) due to prioritization in the ClusterQueue",
				"The VM is scheduled for host maintenance: TERMINATE_ON_HOST_MAINTENANCE; instance terminating in 60 s",
				"Azure scheduled event: Preempt for vmss_3, NotBefore Mon, 01 Jan 2025",
				"Error: The replica was evicted because of a maintenance event",
				"Pod was terminated in response to imminent node shutdown.",
				"SecondaryStatus: Interrupted - Managed spot training interrupted",
			},
			no: []string{"Sequence group 10 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.", "Preemption handler installed: SIGUSR1, will checkpoint upon preemption", "spot instance: yes, checking for interruption notice every 5 s"},
		},
		"watchdog-stuck": {
			yes: []string{"[rank0]:[F ProcessGroupNCCL.cpp:1169] [PG 0 Rank 0] [PG 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives."},
			no:  []string{"ProcessGroupNCCL's heartbeat monitor started"},
		},
		"no-progress": {
			yes: []string{
				"[2023-09-18 21:35:46,519][196071] No heartbeat for components :InferenceWorker_p0-w0 (337 seconds)",
				"[2025-01-01 00:00:00] [nvidia_resiliency_ext.rank_monitor_server] Did not get subsequent heartbeat from rank 3. Waited 300.00 seconds. Killing rank 3 pid 1234",
				"[workload:job] Section 'step' open for 610.2 sec, exceeding 600.0 sec timeout. Rank=3. Shutting down",
				"supervisor: step counter stuck at 2229 for 20 min - declaring hang",
				"watchdog: last log line is 1800 s old, killing job",
				"[hang-detector] training appears hung: step 1200 has not changed for 900 s; terminating all ranks",
				"ERROR: heartbeat file /run/hb/rank3 not updated for 900 seconds. Considering the job hung.",
				"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t./a.go:4 +0x14",
				"WATCHDOG rank 1: no step for 4 s, dumping stacks and aborting", "ci: no output for 6 s, job was stopped by the silence monitor",
			},
			no: []string{"hang detection: enabled (no progress for 600 s)", "heartbeat timeout: 480 s", "data loader stalled for 3.2 s at step 100", "metric unchanged for 3 evaluations"},
		},
		"dumped-traceback": {
			yes: []string{"Timeout (0:05:00)!\nThread 0x00007f0011223344 (most recent call first):\n  File \"train.py\", line 10 in main"},
			no:  []string{"Timeout (0:05:00) for each request"},
		},
		"kernel-hang": {
			yes: []string{"kernel: INFO: task python:4711 blocked for more than 122 seconds.", "kernel: watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python:4711]"},
			no:  []string{"kernel: watchdog: Enabled. Permanently consumes one hw-PMU counter."},
		},
		"reported-straggler": {
			yes: []string{
				"[straggler] GPU relative performance: rank 3 score 0.41 below threshold 0.7: straggler detected, stopping the job",
				"StragglerReport: identified stragglers: relative GPU: {StragglerId(rank=3, node='n07')}",
				"Detected performance outlier: host n07 is 45% slower than the cluster median. Aborting.",
				"step time on rank 12 exceeds the group mean by 3.4x over 50 steps - evicting worker 12",
			},
			no: []string{"[straggler] detection enabled, threshold 0.7, report every 300 s", " minmax across ranks: (1203.2, 1210.3) slowest rank 12"},
		},
		"cpu-time-limit": {
			yes: []string{"CPU time limit exceeded (core dumped)"},
			no:  []string{"CPU time: 3600 s"},
		},
		"batch-time-limit": {
			yes: []string{
				"=>> PBS: job killed: walltime 3612 exceeded limit 3600",
				"TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
				"Warning  DeadlineExceeded  1s  job-controller  Job was active longer than specified deadline",
				"AzureML: Job was canceled because it exceeded the max run duration (86400 s)",
				"Service reached runtime time limit. Stopping.",
				"rc=124: wall time limit of 5 s exceeded, job ended by the batch system",
				"ERROR: Job execution took longer than 1h0m0s seconds",
				"##[error]The job running on agent Hosted Agent ran longer than the maximum time of 60 minutes.",
				"ERROR: wall-clock limit of 2 s exceeded at step 96, stopping",
			},
			no: []string{"The job will be killed when its walltime is exceeded", "walltime limit: 24:00:00", "Solver stopped: time limit reached (gap 0.3%)"},
		},
		"timeout-command": {
			yes: []string{"timeout: sending signal TERM to command ‘python3’"},
			no:  []string{"timeout: failed to run command ‘python4’: No such file or directory"},
		},
		"batch-cancelled": {
			yes: []string{
				"PBS Job Id: 7731 Job deleted at request of ana@login2",
				"JOB 88 ON n1 CANCELLED AT 2025-06-01T00:00:00 BY 1000",
				"flux-job: job.exception type=cancel severity=0 canceled by user",
				"The training job was stopped by the user (StopTrainingJob)",
				"TERM_OWNER: job killed by owner.",
			},
			no: []string{"trial 4 was cancelled by scheduler ASHA", "qdel to cancel"},
		},
		"interrupted": {
			yes: []string{"mpirun: abort is already in progress...hit ctrl-c again to forcibly terminate", "[mpiexec@n1] Sending Ctrl-C to processes as requested"},
			no:  []string{"Press Ctrl-C to stop"},
		},
	} {
		known := samples[signature]
		known.yes, known.no = append(known.yes, s.yes...), append(known.no, s.no...)
		samples[signature] = known
	}
}
