package diagnose_test

import (
	"io"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/logset"
)

// TestDialects checks logs as people paste them, and logs of less common runtimes.
func TestDialects(t *testing.T) {
	const steps = "step 1 loss 3\nstep 2 loss 2\nstep 3 loss 1\n"
	for name, c := range map[string]struct {
		log  string
		want string // the category and the signature
		rank int
	}{
		"Charm++, memory":            {"Info: 12 patches\n------------- Processor 3 Exiting: Called CmiAbort ------------\nReason: Could not malloc()--are we out of memory? (used: 512.0MB)\n[3] Stack Traceback:\n  [3:0] CmiAbort+0x2d  [0x55]\n", "cpu-oom native-out-of-memory", 3},
		"Charm++, a signal":          {"------------- Processor 5 Exiting: Caught Signal ------------\nReason: Segmentation fault\n[5] Stack Traceback:\n  [5:0] libc.so.6 0x2a \n", "invalid-memory-access segfault-trace", 5},
		"Charm++, told to end":       {"------------- Processor 0 Exiting: Caught Signal ------------\nReason: Terminated\n", "killed told-to-end", 0},
		"Charm++, a file":            {"------------- Processor 0 Exiting: Called CmiAbort ------------\nReason: FATAL ERROR: UNABLE TO OPEN CONFIG FILE run7.namd\n", "incorrect-inputs missing-file", 0},
		"Charm++, an assertion":      {"------------- Processor 2 Exiting: Called CmiAbort ------------\nReason: Assertion \"n > 0\" failed in file grid.C line 71.\n", "assertion c-assertion", 2},
		"HCCL waits":                 {steps + "EI0002: 2025-01-05-10:11:12.130.140 Notify wait timed out. Stream 7\n        Solution: 1. Check that other ranks have no errors.\n", "collective-timeout nccl-timeout", -1},
		"HCCL in a traceback":        {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    dist.barrier()\nRuntimeError: HCCL error in: ProcessGroupHCCL.cpp:99\n[ERROR] 2025-01-05-10:11:12 (PID:7, Device:2, RankID:2) ERR02200 DIST call hccl api failed.\nEI0006: [PID: 7] 2025-01-05-10:11:12.130.140 Getting socket times out. Reason: none\n", "collective-timeout nccl-timeout", -1},
		"NPU memory":                 {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    g()\nRuntimeError: NPU function error: aclrtMalloc, error code is 207001\nEL0004: 2025-01-05-10:11:12.130.140 Failed to allocate memory.\n", "gpu-oom cuda-out-of-memory", -1},
		"a port of HCCL":             {"EJ0003: 2025-01-05-10:11:12.130.140 Failed to bind the IP port. Reason: The IP address and port have been bound already.\n", "port-in-use address-in-use", -1},
		"an NPU fails":               {steps + "EH9999: Inner Error!\nEH9999: [PID: 8] 2025-01-05-10:11:12.130.140 synchronize stream failed, runtime result = 507015\n", "cuda-failure cuda-launch-failure", -1},
		"HCCL's own log":             {"[ERROR] HCCL(811,python):2025-01-05-10:11:12.130.140 [op_base.cc:1200][811]error code[6] timeout: topo detect failed\n", "collective-timeout nccl-timeout", -1},
		"keys":                       {"Missing key(s) in state_dict: \"layers.0.weight\", \"layers.0.bias\".\n\tUnexpected key(s) in state_dict: \"module.layers.0.weight\".\n", "semantic-error torch-state-dict", -1},
		"dask":                       {"distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\ndistributed.nanny - WARNING - Restarting worker\ndistributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\n", "cpu-oom batch-oom", -1},
		"dask goes on":               {"distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\ndistributed.nanny - WARNING - Restarting worker\nblock 7 of 9 done\nblock 8 of 9 done\nblock 9 of 9 done\nall blocks written\n", "", -1},
		"a pod":                      {"    State:          Terminated\n      Reason:       Error\n      Exit Code:    137\n      Started:      Tue, 06 Jan 2026 08:00:01 +0000\n      Finished:     Tue, 06 Jan 2026 08:10:44 +0000\n", "killed sigkill", -1},
		"a pod that crashed":         {"    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    139\n      Finished:     Tue, 06 Jan 2026 08:10:44 +0000\n", "invalid-memory-access child-segfault", -1},
		"a pod, memory":              {"    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n      Finished:     Tue, 06 Jan 2026 08:10:44 +0000\n", "cpu-oom batch-oom", -1},
		"Julia":                      {"      From worker 4:\titer 1\n      From worker 5:\titer 1\n      From worker 5:\t\n      From worker 5:\t[811] signal (15): Terminated\n      From worker 5:\tin expression starting at none:0\n", "killed sigterm", 5},
		"ARMCI":                      {"[6] ARMCI assert fail in gmr_create() [src/gmr.c:111]: \"slices != NULL\"\n[6] Backtrace:\n", "assertion c-assertion", 6},
		"Open MPI, no way":           {"--------------------------------------------------------------------------\nAt least one pair of MPI processes are unable to reach each other for\nMPI communications.  This means that no Open MPI device has indicated\nthat it can be used.\n--------------------------------------------------------------------------\n", "mpi-runtime mpi-transport", -1},
		"macOS":                      {steps + "Abort trap: 6\n", "core-dump sigabrt", -1},
		"macOS, in a script":         {steps + "./go.sh: line 7:  4711 Segmentation fault: 11  ./solve\n", "invalid-memory-access sigsegv", -1},
		"German":                     {steps + "./go.sh: Zeile 7: 4711 Getötet                 ./solve\n", "killed sigkill", -1},
		"French":                     {steps + "Erreur de segmentation (core dumped)\n", "invalid-memory-access sigsegv", -1},
		"Spanish":                    {"./go.sh: línea 3: srunn: orden no encontrada\n", "launch-error command-not-found", -1},
		"Russian":                    {steps + "cp: не удалось записать 'x.h5': На устройстве не осталось свободного места\n", "disk-full no-space", -1},
		"Chinese":                    {steps + "python: can't open file 'train.py': [Errno 2] 没有那个文件或目录\n", "incorrect-inputs script-missing", -1},
		"line numbers":               {"[201] step 7\n[202] Traceback (most recent call last):\n[203]   File \"a.py\", line 7, in f\n[204]     g()\n[205] KeyError: 'mass'\n", "semantic-error python-key-error", -1},
		"ctest":                      {"17: Abort(1614479) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack:\n17: MPIR_Init_thread(143): \n17: MPID_Init(1221)......: \n17: MPIDI_OFI_mpi_init_hook(1546): OFI addrinfo() failed\n", "mpi-runtime mpi-init", 0},
		"the end is missing":         {steps + "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    g()\n  File \"a.py\", line 3, in g\n", "traceback uncaught-exception", -1},
		"the end is missing, a kill": {steps + "a.sh: line 3: 4711 Killed                  ./solve\nTraceback (most recent call last):\n  File \"a.py\", line 7, in f\n    subprocess.check_call(c)\n", "killed sigkill", -1},
		"the line ends are missing":  {"Traceback (most recent call last): File \"/w/a.py\", line 88, in step loss.backward() File \"/opt/lib/python3.10/site-packages/torch/_tensor.py\", line 487, in backward torch.autograd.backward( File \"/opt/lib/python3.10/site-packages/torch/autograd/__init__.py\", line 200, in backward Variable._execution_engine.run_backward( torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n", "gpu-oom cuda-out-of-memory", -1},
		"a record in JSON":           {"{\n  \"message\": {\n    \"message\": \"RendezvousConnectionError: The connection to the C10d store has failed.\",\n    \"extraInfo\": {\n      \"py_callstack\": \"Traceback (most recent call last):\\n  File \\\"/w/r.py\\\", line 5, in f\\n    store()\\nRuntimeError: timed out\\n\\nThe above\"\n", "network-error store-unreachable", -1},
		"failed, not timed out":      {"[rank3]:[E1 ProcessGroupNCCL.cpp:684] [Rank 3] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, data may be incomplete.\n[rank3]:[E1 ProcessGroupNCCL.cpp:1895] [Rank 3] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.20.5\n", "network-error nccl-remote-error", 3},
		"timed out":                  {"[rank3]:[E1 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600011 milliseconds\n[rank3]:[E1 ProcessGroupNCCL.cpp:684] [Rank 3] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, data may be incomplete.\n", "collective-timeout nccl-timeout", -1},
		"pyxis, the disk":            {"slurmstepd: error: pyxis: child 811 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:     tar: layer: Cannot write: No space left on device\nslurmstepd: error: Failed to invoke spank plugin stack\n", "disk-full no-space", -1},
		"pyxis, no reason":           {"slurmstepd: error: pyxis: container start failed with error code: 1\nslurmstepd: error: Failed to invoke spank plugin stack\n", "launch-error container-runtime", -1},
		"PBS, time":                  {"PBS Job Id: 811.hpc\nAborted by PBS Server\nJob exceeded its walltime limit. Job was aborted\nExit_status=-11\n", "time-limit batch-time-limit", -1},
		"LightGBM":                   {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    g()\nlightgbm.basic.LightGBMError: Socket send error, code: 104\n", "network-error peer-closed", -1},
		"LightGBM, a table":          {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    g()\nlightgbm.basic.LightGBMError: Length of label is not same with #data\n", "semantic-error library-type-error", -1},
		"a message at the margin":    {"Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    g()\nRuntimeError: /w/include/pool.h 88\ncuda call failed with error 2 out of memory\n", "gpu-oom cuda-out-of-memory", -1},
		"two signals":                {"nid7: rank 9 died from signal 11\nnid7: rank 0 died from signal 15\n", "invalid-memory-access segfault-trace", 9},
		"no TPU":                     {"INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so\nxla_bridge.py:900] Unable to initialize backend 'rocm': NOT_FOUND\n" + steps, "", -1},
		"XLA tries":                  {"2026-01-05 10:11:12.1: E xla/stream_executor/cuda/cuda_driver.cc:802] failed to allocate 30.00G (32212254720 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n" + steps, "", -1},
		"an actor ends":              {steps + "Traceback (most recent call last):\n  File \"actor.py\", line 7, in exit_actor\n    raise exit\nSystemExit: 0\n", "", -1},
		"an actor fails":             {steps + "Traceback (most recent call last):\n  File \"actor.py\", line 7, in run\n    sys.exit(3)\nSystemExit: 3\n", "traceback uncaught-exception", -1},
		"a queue":                    {steps + "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/multiprocessing/queues.py\", line 244, in _feed\n    send_bytes(obj)\nBrokenPipeError: [Errno 32] Broken pipe\n", "", -1},
	} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.log)), nil }
		e, err := logset.Read(t.Context(), []logset.Log{{Name: "job.log", Open: open}}, rules.Standard(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		got := diagnose.Logs(rules.Standard(), e)
		if said := strings.TrimSpace(string(got.Category) + " " + got.Signature); said != c.want || c.rank >= 0 && got.Rank != c.rank {
			t.Errorf("%s: got %q rank %d, want %q rank %d: %s", name, said, got.Rank, c.want, c.rank, got.Text)
		}
	}
}
