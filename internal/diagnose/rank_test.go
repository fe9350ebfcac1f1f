package diagnose_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/logset"
)

// ofRank repeats a text for each of n ranks, with the number of the rank in the place of {}.
func ofRank(n int, text string) string {
	var b strings.Builder
	for r := range n {
		b.WriteString(strings.ReplaceAll(text, "{}", string(rune('0'+r))))
	}
	return b.String()
}

// banner returns what hydra prints about the end of a rank.
func banner(rank, end string) string {
	return "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK " + rank + " PID 1234 RUNNING AT n2\n=   " + end + "\n"
}

// raised returns a traceback whose lines begin with a tag.
func raised(tag, title string) string {
	var b strings.Builder
	for _, l := range []string{"Traceback (most recent call last):", `  File "/w/fit.py", line 31, in <module>`, "    main()", title} {
		b.WriteString(tag + l + "\n")
	}
	return b.String()
}

const (
	keyError = "KeyError: 'lr_head'"
)

// TestRank checks that the root-cause rank is found in the various forms in which launchers and programs name ranks.
func TestRank(t *testing.T) {
	for _, c := range []struct {
		name, logs string
		rank       int
	}{
		{"srun -l below a header", "JOB 4 on n[1-2]\nLoading gcc/12\nulimit ok\n" + ofRank(4, "{}: step 1 loss 2.0\n") + raised("2: ", keyError) + "srun: error: n2: task 2: Exited with exit code 1\n", 2},
		{"mpirun", ofRank(4, "[1,{}]<stdout>:step 1 loss 2.0\n") + raised("[1,3]<stderr>:", keyError), 3},
		{"prterun", ofRank(4, "[prterun-n1-812@1,{}]<stdout>: step 1 loss 2.0\n") + raised("[prterun-n1-812@1,3]<stderr>: ", keyError), 3},
		{"horovodrun", ofRank(4, "[{}]<stdout>:step 1 loss 2.0\n") + raised("[3]<stderr>:", keyError), 3},
		{"torch", ofRank(4, "[rank{}]: step 1 loss 2.0\n") + raised("[rank3]: ", keyError), 3},
		{"torchrun --tee", ofRank(4, "[default{}]:step 1 loss 2.0\n") + raised("[default2]:", keyError), 2},
		{"kubectl --prefix", ofRank(4, "[pod/fit-worker-{}/pytorch] step 1 loss 2.0\n") + raised("[pod/fit-worker-2/pytorch] ", keyError), 2},
		{"stern", ofRank(4, "fit-worker-{} pytorch step 1 loss 2.0\n") + raised("fit-worker-2 pytorch ", keyError), 2},
		{"docker compose", ofRank(4, "fit-{}  | step 1 loss 2.0\n") + raised("fit-2  | ", keyError), 2},
		{"time and rank", ofRank(4, "2026-03-01 10:00:00,123 [RANK {}] INFO step 1 loss 2.0\n") + "2026-03-01 10:00:01,123 [RANK 3] ERROR failed\n" + raised("", keyError), 3},
		{"rank in the message", ofRank(4, "INFO rank={} step 1 loss 2.0\n") + "ERROR rank=2 cannot open file /d/x.bin: No such file or directory\n", 2},
		{"of N", ofRank(4, "2026-03-01 10:00:00,123 [{}/4] INFO step 1 loss 2.0\n") + "2026-03-01 10:00:01,123 [2/4] ERROR worker failed\n" + raised("", keyError), 2},
		{"Lightning", ofRank(4, "[rank: {}] Seed set to 1\n") + "step 1 loss 2.0\n[rank: 2] failed\n" + raised("", keyError), 2},
		{"Cray MPICH", "step 1 loss 2.0\nCannot open input deck run.in: No such file or directory\nRank 17 [Tue Mar  3 10:00:00 2026] [c0-0c0s3n1] application called MPI_Abort(MPI_COMM_WORLD, 1) - process 17\n", 17},
		{"ALPS", "step 1 loss 2.0\n_pmiu_daemon(SIGCHLD): [NID 00045] [c0-0c0s11n1] [Tue Mar  3 10:00:00 2026] PE RANK 12 exit signal Segmentation fault\n", 12},
		{"PALS", "step 1 loss 2.0\nx1000c0s0b0n1.hsn.example: rank 13 died from signal 11 and dumped core\nx1000c0s0b0n0.hsn.example: rank 0 died from signal 15\n", 13},
		{"jsrun", "step 1 loss 2.0\nERROR:  One or more process (first noticed rank 21) terminated with signal 11 (core dumped)\n", 21},
		{"Intel MPI", "step 1\n\n===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 1234 RUNNING AT n2\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n===================================================================================\n", 3},
		{"Intel MPI ends the others", "step 1\n" + banner("40", "EXIT STATUS: 1") + banner("41", "KILLED BY SIGNAL: 9 (Killed)") + banner("42", "KILLED BY SIGNAL: 9 (Killed)"), 40},
		{"srun ends the others", "0: step 1\n1: step 1\n2: step 1\n3: step 1\n3: the grid is odd\n3: MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n3: with errorcode 1.\n" +
			"srun: error: n1: tasks 0-2: Killed\nsrun: error: n1: task 3: Exited with exit code 1\n", 3},
		{"MVAPICH", "step 1\n[n2:mpi_rank_12][error_sighandler] Caught error: Segmentation fault (signal 11)\n", 12},
		{"MPICH", "step 1\nAbort(403234063) on node 5 (rank 5 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:\ninternal_Recv(127): MPI_Recv(buf=0x1, count=1) failed\n", 5},
		{"prterun noticed", "step 1\n--------------------------------------------------------------------------\nprterun noticed that process rank 3 with PID 1723 on node n2 exited on\nsignal 11 (Segmentation fault).\n--------------------------------------------------------------------------\n", 3},
		{"GASNet", "step 1\n*** Caught a fatal signal (proc 3): SIGSEGV(11)\n", 3},
		{"Charm++", "step 1\n------------- Processor 3 Exiting: Called CmiAbort ------------\nReason: FATAL ERROR: cannot open file a.psf\n", 3},
		{"process of a rank", ofRank(4, "rank {} is pid 410{} on n1\n") + "step 1\n[n1:04102] *** Process received signal ***\n[n1:04102] Signal: Segmentation fault (11)\n[n1:04102] Failing at address: (nil)\n", 2},
		{"host of ranks", "srun: error: Node failure on n3\nrank 0 on n1\nrank 1 on n1\nrank 2 on n2\nrank 3 on n2\nrank 4 on n3\nrank 5 on n3\n", 4},
		{"source", raised("", keyError)[:40] + "\n  File \"/w/fit.py\", line 31, in <module>\n    if rank == 2: x = cfg['lr_head']\n" + keyError + "\n", 2},
		{"only one did not go on", ofRank(4, "rank {}: ready\n") + "rank 0: wrote part\nrank 1: wrote part\nrank 3: wrote part\n" + raised("", keyError), 2},
		{"every rank", ofRank(3, "hello from {} of 3\n") + strings.Repeat(raised("", "ModuleNotFoundError: No module named 'h5py'"), 3) + "--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1,1],2]\n  Exit code:    1\n", 0},
		{"lost by its neighbours", ofRank(4, "rank {}: step 1\n") + "rank 1: lost connection to rank 2\nrank 3: lost connection to rank 2\n" + raised("", keyError), 2},
		{"files of ranks", "-- out.0 --\nstep 1\n-- out.1 --\nstep 1\n" + raised("", keyError) + "-- out.2 --\nstep 1\n", 1},
		{"JAX tasks", "E0303 04:21:19.771 1 coordination_service.cc:488] The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:5\n", 5},
		{"heartbeat of a rank", ofRank(4, "[rank{}]: step 1\n") + "[rank0]: RuntimeError: Timed out waiting 8000ms for recv operation to complete\nworker rank=3 last heartbeat 661.0 s ago\n", 3},
		{"locality", ofRank(4, "locality {} of 4 ready\n") + "step 1\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  locality 2: cannot open file mesh.bin\n", 2},
		{"Slurm's memory limit", ofRank(4, "{}: step 1\n") + "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\nsrun: error: n2: task 3: Out Of Memory\nsrun: error: n1: tasks 0-2: Terminated\n", 3},
		{"kernel's record with a host", "-- job.log --\nrank 0 on n1 pid 11\nrank 1 on n1 pid 12\nrank 2 on n2 pid 11\nrank 3 on n2 pid 12\nstep 1\nsrun: error: n2: task 3: Killed\n-- dmesg-n2.log --\n[ 10.0] Memory cgroup out of memory: Killed process 9001 (python) total-vm:390480kB, anon-rss:1kB\n", 3},
		{"Xid on a host", "-- job.log --\nn1:100:200 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\nn2:100:200 [0] NCCL INFO comm 0x1 rank 2 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE\nn2:101:201 [1] NCCL INFO comm 0x1 rank 3 nranks 4 cudaDev 1 busId 2000 - Init COMPLETE\nstep 1\n[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n-- dmesg-n2.log --\n[ 10.0] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n", 2},
		{"monitored barrier", ofRank(4, "[rank{}]: step 1\n") + "[rank0]: RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms\n", 2},
		{"only one did not wait", "world_size: 4\n" + ofRank(2, "[E1 ProcessGroupNCCL.cpp:629] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600065 milliseconds before timing out.\n") + "[E1 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600065 milliseconds before timing out.\n", 2},
		{"waiting for", ofRank(4, "[rank{}]: step 1\n") + "[rank0]: still waiting for ranks: [3]\n[rank0]: TimeoutError: barrier timed out after 600 s\n", 3},
		{"arrived and absent", "rank 0: step 1\nbarrier: 7 of 8 ranks arrived, absent: rank 5\nTimeoutError: barrier timed out after 600 s\n", 5},
		{"Horovod's stall", "W horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\nStalled ranks:\n2: [grad_1, grad_2]\nERROR: Stall shutdown: one or more tensors stalled for more than 600 seconds\n", 2},
		{"spawned process", "Traceback (most recent call last):\n  File \"f.py\", line 1, in <module>\ntorch.multiprocessing.spawn.ProcessRaisedException:\n\n-- Process 2 terminated with the following error:\n" + raised("", keyError), 2},
		{"the description of a pod", "$ kubectl describe pod fit-worker-2\nName:             fit-worker-2\nStatus:           Failed\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n", 2},
		{"pods and their nodes", "10s Normal Scheduled pod/fit-worker-0 Successfully assigned ml/fit-worker-0 to gke-a-1\n10s Normal Scheduled pod/fit-worker-1 Successfully assigned ml/fit-worker-1 to gke-a-2\n2s Normal NodeNotReady node/gke-a-2 Node gke-a-2 status is now: NodeNotReady\n", 1},
		{"torchrun's table", "step 1\n" + raised("", keyError) + raised("", "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.1]:77") + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n============================================================\nfit.py FAILED\n------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-26_13:09:05\n  host      : n1\n  rank      : 6 (local_rank: 6)\n  exitcode  : 1 (pid: 2901)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org\n============================================================\n", 6},
		{"one log for each node", "-- node0.log --\n" + ofRank(2, "[rank{}]: step 1\n") + "[rank0]: RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.1]:77\n-- node1.log --\n[rank2]: step 1\n[rank3]: step 1\n" + raised("[rank3]: ", keyError), 3},
		{"Ray", "(TorchTrainer pid=9) - (node_id=aa, ip=10.0.0.5, pid=411) world_rank=0, local_rank=0, node_rank=0\n(TorchTrainer pid=9) - (node_id=bb, ip=10.0.0.6, pid=412) world_rank=1, local_rank=0, node_rank=1\n(RayTrainWorker pid=411, ip=10.0.0.5) epoch 0\n" + raised("(RayTrainWorker pid=412, ip=10.0.0.6) ", keyError), 1},
		{"pdsh above srun", ofRank(4, "n1: [{}] step 1\n") + raised("n2: [3] ", keyError), 3},
		{"JSON lines", `{"rank":0,"step":1}` + "\n" + `{"rank":2,"level":"error","exc":"RuntimeError: CUDA error: an illegal memory access was encountered"}` + "\n", 2},
		{"stacks", "[watchdog] no progress for 600 s, dumping stacks; the job hangs\n" + "rank 0 stack dump:\n  File \"/t/distributed_c10d.py\", line 3 in barrier\n  File \"/w/fit.py\", line 9 in step\nrank 1 stack dump:\n  File \"/usr/lib/python3/queue.py\", line 171 in get\n  File \"/w/data.py\", line 40 in next_batch\nrank 2 stack dump:\n  File \"/t/distributed_c10d.py\", line 3 in barrier\n  File \"/w/fit.py\", line 9 in step\n", 1},
		{"a place in the kernel's table", "-- job.log --\nnumber of ranks: 2\nstep 1\nKilled\n-- dmesg --\n[1.0] [   41]     0    41   97  33  1  1  1  1  0  0 fit\n[1.0] [   42]     0    42   97  33  1  1  1  1  0  0 fit\n[1.1] Out of memory: Killed process 42 (fit) total-vm:1kB, anon-rss:1kB, file-rss:0kB\n", 1},
		{"a process of a PE", "PE 0: pid 811 on n1\nPE 1: pid 812 on n1\nstep 1\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 812 RUNNING AT n1\n=   EXIT CODE: 9\n", 1},
		{"a rank on the host of a record", "-- job.log --\nrank 0 on g1\nrank 4 on g2\nstep 1\nrank 6: synchronize failed: unknown error\nsrun: error: g2: task 6: Exited with exit code 1\nslurmstepd: error: *** STEP 1.0 ON g1 CANCELLED AT 2026-01-01T00:00:00 ***\nsrun: error: g1: tasks 0-3: Terminated\nsrun: error: g2: tasks 4-5,7: Terminated\n-- g2-kern.log --\nMay  1 03:11:10 g2 kernel: NVRM: Xid (PCI:0000:b7:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n", 6},
		{"a host without tags", "-- node1.log --\nn1 waits\nTimed out after 601 seconds waiting for clients. 2/4 clients joined.\n-- node2.log --\n[default1]:step 1\n" + raised("[default1]:", keyError), 3},
		{"DeepSpeed's map", "w-2: [2026-01-01 09:00:01,1] [INFO] [launch.py:163:main] global_rank_mapping=defaultdict(<class 'list'>, {'w-1': [0, 1], 'w-2': [2, 3]})\nw-1: step 1\nw-2: step 1\nw-2: Connection to w-2 closed by remote host.\npdsh@w-1: w-2: ssh exited with exit code 255\n", 2},
		{"a barrier that misses a rank", "-- r0.log --\npe 0: step 1\npe 0: barrier #9: 300 s without all PEs, missing: 2\npe 0: giving up on the barrier\n-- r1.log --\npe 1: step 1\npe 1: barrier #9: 300 s without all PEs, missing: 2\n-- r2.log --\npe 2: step 1\n", 2},
		{"all that there are", " processes:           2\nstep 1\nFortran runtime error: Cannot open file 'm.0001': No such file or directory\nFortran runtime error: Cannot open file 'm.0000': No such file or directory\n", 0},
		{"the parts of a rank", "step 1\nFATAL ERROR: CUDA error in file a.C, line 3\n on Pe 14 (n1 device 2): unspecified launch failure\nMPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n", 2},
		{"slow rank", ofRank(4, "[rank {}] step 1\n") + "[rank 0] straggler detected: rank 3 is 9.0x slower than the median; stopping the job\n", 3},
		{"different collectives", "[rank0]: RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 2 is running collective: CollectiveFingerPrint(OpType=BROADCAST)\n[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 2 is running collective: CollectiveFingerPrint(OpType=BROADCAST)\n", 2},
		{"OpenFOAM", "Time = 3\n[2] --> FOAM FATAL ERROR:\n[2] Maximum number of iterations exceeded\n[2] FOAM parallel run exiting\n", 2},
		{"GROMACS", "-------------------------------------------------------\nProgram:     gmx mdrun, version 2022.5\nSource file: src/gromacs/domdec/domdec.cpp (line 2277)\nMPI rank:    3 (out of 8)\n\nFatal error:\nThe domain decomposition grid does not fit\n\nFor more information visit the website\n-------------------------------------------------------\n", 3},
		{"LAMMPS on one", "Step 100\nERROR on proc 3: Bond atoms 3 4 missing on proc 3 at step 100 (src/ntopo_bond_all.cpp:59)\nMPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n", 3},
		{"LAMMPS on all", "LAMMPS (29 Sep 2021)\nERROR: Unknown pair style foo (src/force.cpp:278)\nLast command: pair_style foo\n--------------------------------------------------------------------------\n  Process name: [[1,1],2]\n  Exit code:    1\n", 0},
	} {
		data := c.logs
		if !strings.HasPrefix(data, "-- ") {
			data = "-- job.log --\n" + data
		}
		var logs []logset.Log
		for _, f := range txtar.Parse([]byte(data)).Files {
			logs = append(logs, logset.Log{Name: f.Name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.Data)), nil }})
		}
		e, err := logset.Read(t.Context(), logs, rules.Standard(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := diagnose.Logs(rules.Standard(), e); got.Rank != c.rank {
			t.Errorf("%s: got %s %s rank %d, want %d: %s", c.name, got.Category, got.Signature, got.Rank, c.rank, got.Text)
		}
	}
}
