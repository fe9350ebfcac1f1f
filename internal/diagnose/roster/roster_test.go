package roster

import "testing"

// TestProcess checks lines of launchers and libraries that name a process and its rank.
func TestProcess(t *testing.T) {
	for line, want := range map[string][2]int{
		"(WorkerDict pid=318707) env: RANK=3 WORLD_SIZE=4 LOCAL_RANK=0":                                                         {318707, 3},
		"b02-gpu:40106:40288 [2] NCCL INFO comm 0x55d6 rank 6 nranks 8 cudaDev 2 - Init COMPLETE":                               {40106, 6},
		"[brd-0215:40741] *** reported by process [3371171841,5]":                                                               {40741, 5},
		"[INFO] [launch.py:256:main] process 266102 spawned with command: ['/usr/bin/python3', '-u', 'm.py', '--local_rank=1']": {266102, 1},
		"PE 1: pid 26495 on c31":                         {26495, 1},
		"part 3 pid 8121":                                {8121, 3},
		"worker 2 (pid 4013) ready":                      {4013, 2},
		"Global rank 0 (PID 31865) exited with code -11": {31865, 0},
	} {
		if pid, rank, ok := Process(line); !ok || pid != want[0] || rank != want[1] {
			t.Errorf("%s: got %d, %d, %v", line, pid, rank, ok)
		}
	}
	if _, _, ok := Process("(main pid=7) LOCAL_RANK=0 step 3"); ok {
		t.Error("a rank on a host is no rank of the job")
	}
}

// TestPrinter checks that the tags of libraries name the process that has printed a line.
func TestPrinter(t *testing.T) {
	for line, want := range map[string]int{
		"(VllmWorkerProcess pid=20441) ERROR 10-02 12:07:41 worker.py:233] x":         20441,
		"b02-gpu:40106:40522 [2] NCCL WARN NET/IB : mlx5_2:1 Got async event":         40106,
		"[lyra12:221772:0:221772] Caught signal 8":                                    221772,
		"brd-0215.40741PSM2 can't open hfi unit: -1 (err=23)":                         40741,
		"RayTaskError(E): ray::WorkerDict.update() (pid=318707, ip=10.20.15.18, a=1)": 318707,
		"12:30:01 step 3": 0,
	} {
		if got := Printer(line); got != want {
			t.Errorf("%s: got %d", line, got)
		}
	}
}

// TestIntroduced checks that a program introduces itself at the beginning of its log as one rank.
func TestIntroduced(t *testing.T) {
	for _, c := range []struct {
		text []string
		want int
	}{
		{[]string{"rank 1/2 on gpfs-client07", "[1] it 3"}, 1},
		{[]string{"taskid: 12 hostname: cn031"}, 12},
		{[]string{"Process index: 0", "Process index: 1"}, -1},
		{[]string{"lost connection to rank 3"}, -1},
	} {
		if got := Introduced(c.text); got != c.want {
			t.Errorf("%q: got %d, want %d", c.text, got, c.want)
		}
	}
}

// TestPod checks the rank in the name of a pod. If rank 0 has a pod of its own, the ranks of the workers come after it.
func TestPod(t *testing.T) {
	for _, c := range []struct {
		line   string
		master bool
		want   int
	}{
		{"9m10s Warning NodeShutdown pod/sdxl-workers-0-3-9kx2p Node is shutting down", false, 3},
		{"clip-l14-worker-1             0/1     OOMKilled   0", true, 2},
		{"clip-l14-worker-1             0/1     OOMKilled   0", false, 1},
		{"node/gke-spot-a100-1f2c-7qqd is NotReady", false, -1},
	} {
		if got := Pod(c.line, c.master); got != c.want {
			t.Errorf("%s: got %d, want %d", c.line, got, c.want)
		}
	}
}

// TestTorchrun checks that the rank is found from the local rank and the number of the host.
func TestTorchrun(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  int
	}{
		{[]string{"failed (exitcode: 1) local_rank: 3 (pid: 93) of binary: python"}, 3},
		{[]string{"failed (exitcode: 1) local_rank: 1 (pid: 93)", "torchrun --nnodes 2 --nproc_per_node 4 --node_rank 1 t.py"}, 5},
		{[]string{"failed (exitcode: 1) local_rank: 1 (pid: 93)", "torchrun --nnodes 2 t.py"}, -1},
		{[]string{"Child process 93 (local_rank 2) FAILED (exitcode -11)"}, 2},
		{[]string{"[launch.py:434:sigkill_handler] ['python3', '-u', 't.py', '--local_rank=0', '-x'] exits with return code = -9"}, 0},
		{[]string{"[launch.py:434:sigkill_handler] ['python3', '-u', 't.py', '--local_rank=7', '-x'] exits with return code = -9"}, -1},
	} {
		var r Torchrun
		for _, l := range c.lines {
			r.Read(l)
		}
		if got := r.Rank(); got != c.want {
			t.Errorf("%q: got %d, want %d", c.lines, got, c.want)
		}
	}
}

// TestOwn checks the forms in which programs name their own rank.
func TestOwn(t *testing.T) {
	for line, want := range map[string]int{
		"mpi_rank=5: cannot open mesh.nc":                            5,
		"ERROR: negative density in cell 1023 (rank           2 )":   2,
		"20240305 100007.311 ERROR PET0021 ice_grid.F90:811 no file": 21,
		"PE 2: malloc of 8388608 bytes failed":                       2,
		"FATAL: MPI process 7: singular matrix":                      7,
		"ERROR at MPI task 3 in routine fft":                         3,
		" iam= 12 : particle outside of the domain":                  12,
		"[11:node05][../../dapl_conn_rc.c:1003] error":               11,
		"[2 - 7f1e3c4a6c80]   12.3 {5}{runtime}: LEGION ERROR":       2,
		"(VllmWorker TP3 pid=2044) ERROR out of memory":              3,
		"*** Caught a fatal signal: SIGSEGV(11) on node 3/8":         3,
		"[watchdog r2] no progress for 4 s":                          2,
		"HDF5-DIAG: Error detected in HDF5 (1.12.2) MPI-process 11:": 11,
		"ERROR STOP density is negative in image 3":                  3,
		"INFO:resume.py:12:[r12654] resuming from ckpt":              -1, // a PID
		"processor3: 182344 cells":                                   -1,
		"rank 3: connection to rank 5 lost":                          -1, // another rank
		"node 4: out of memory":                                      -1,
		"image 37 is not a JPEG":                                     -1,
		"5 files on disk, 3 tasks done":                              -1,
	} {
		if got := Own(line); got != want {
			t.Errorf("%s: got %d, want %d", line, got, want)
		}
	}
}
