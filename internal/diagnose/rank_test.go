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

// ofRank repeats a text for each rank, with its number in the place of R.
func ofRank(n int, text string) string {
	var b strings.Builder
	for r := range n {
		b.WriteString(strings.ReplaceAll(text, "R", string(rune('0'+r))))
	}
	return b.String()
}

// raised is a traceback whose lines begin with a tag.
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

// TestRank: the rank at fault is found in the forms in which launchers and programs name ranks.
func TestRank(t *testing.T) {
	for _, c := range []struct {
		name, logs string
		rank       int
	}{
		{"srun -l below a header", "JOB 4 on n[1-2]\nLoading gcc/12\nulimit ok\n" + ofRank(4, "R: step 1 loss 2.0\n") + raised("2: ", keyError) + "srun: error: n2: task 2: Exited with exit code 1\n", 2},
		{"mpirun", ofRank(4, "[1,R]<stdout>:step 1 loss 2.0\n") + raised("[1,3]<stderr>:", keyError), 3},
		{"prterun", ofRank(4, "[prterun-n1-812@1,R]<stdout>: step 1 loss 2.0\n") + raised("[prterun-n1-812@1,3]<stderr>: ", keyError), 3},
		{"horovodrun", ofRank(4, "[R]<stdout>:step 1 loss 2.0\n") + raised("[3]<stderr>:", keyError), 3},
		{"torch", ofRank(4, "[rankR]: step 1 loss 2.0\n") + raised("[rank3]: ", keyError), 3},
		{"torchrun --tee", ofRank(4, "[defaultR]:step 1 loss 2.0\n") + raised("[default2]:", keyError), 2},
		{"kubectl --prefix", ofRank(4, "[pod/fit-worker-R/pytorch] step 1 loss 2.0\n") + raised("[pod/fit-worker-2/pytorch] ", keyError), 2},
		{"stern", ofRank(4, "fit-worker-R pytorch step 1 loss 2.0\n") + raised("fit-worker-2 pytorch ", keyError), 2},
		{"docker compose", ofRank(4, "fit-R  | step 1 loss 2.0\n") + raised("fit-2  | ", keyError), 2},
		{"time and rank", ofRank(4, "2026-03-01 10:00:00,123 [RANK R] INFO step 1 loss 2.0\n") + "2026-03-01 10:00:01,123 [RANK 3] ERROR failed\n" + raised("", keyError), 3},
		{"rank in the message", ofRank(4, "INFO rank=R step 1 loss 2.0\n") + "ERROR rank=2 cannot open file /d/x.bin: No such file or directory\n", 2},
		{"of N", ofRank(4, "2026-03-01 10:00:00,123 [R/4] INFO step 1 loss 2.0\n") + "2026-03-01 10:00:01,123 [2/4] ERROR worker failed\n" + raised("", keyError), 2},
		{"Lightning", ofRank(4, "[rank: R] Seed set to 1\n") + "step 1 loss 2.0\n[rank: 2] failed\n" + raised("", keyError), 2},
		{"Cray MPICH", "step 1 loss 2.0\nCannot open input deck run.in: No such file or directory\nRank 17 [Tue Mar  3 10:00:00 2026] [c0-0c0s3n1] application called MPI_Abort(MPI_COMM_WORLD, 1) - process 17\n", 17},
		{"ALPS", "step 1 loss 2.0\n_pmiu_daemon(SIGCHLD): [NID 00045] [c0-0c0s11n1] [Tue Mar  3 10:00:00 2026] PE RANK 12 exit signal Segmentation fault\n", 12},
		{"PALS", "step 1 loss 2.0\nx1000c0s0b0n1.hsn.example: rank 13 died from signal 11 and dumped core\nx1000c0s0b0n0.hsn.example: rank 0 died from signal 15\n", 13},
		{"jsrun", "step 1 loss 2.0\nERROR:  One or more process (first noticed rank 21) terminated with signal 11 (core dumped)\n", 21},
		{"Intel MPI", "step 1\n\n===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 1234 RUNNING AT n2\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n===================================================================================\n", 3},
		{"MVAPICH", "step 1\n[n2:mpi_rank_12][error_sighandler] Caught error: Segmentation fault (signal 11)\n", 12},
		{"MPICH", "step 1\nAbort(403234063) on node 5 (rank 5 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:\ninternal_Recv(127): MPI_Recv(buf=0x1, count=1) failed\n", 5},
		{"prterun noticed", "step 1\n--------------------------------------------------------------------------\nprterun noticed that process rank 3 with PID 1723 on node n2 exited on\nsignal 11 (Segmentation fault).\n--------------------------------------------------------------------------\n", 3},
		{"GASNet", "step 1\n*** Caught a fatal signal (proc 3): SIGSEGV(11)\n", 3},
		{"Charm++", "step 1\n------------- Processor 3 Exiting: Called CmiAbort ------------\nReason: FATAL ERROR: cannot open file a.psf\n", 3},
		{"process of a rank", ofRank(4, "rank R is pid 410R on n1\n") + "step 1\n[n1:04102] *** Process received signal ***\n[n1:04102] Signal: Segmentation fault (11)\n[n1:04102] Failing at address: (nil)\n", 2},
		{"host of ranks", "srun: error: Node failure on n3\nrank 0 on n1\nrank 1 on n1\nrank 2 on n2\nrank 3 on n2\nrank 4 on n3\nrank 5 on n3\n", 4},
		{"source", raised("", keyError)[:40] + "\n  File \"/w/fit.py\", line 31, in <module>\n    if rank == 2: x = cfg['lr_head']\n" + keyError + "\n", 2},
		{"only one did not go on", ofRank(4, "rank R: ready\n") + "rank 0: wrote part\nrank 1: wrote part\nrank 3: wrote part\n" + raised("", keyError), 2},
		{"every rank", ofRank(3, "hello from R of 3\n") + strings.Repeat(raised("", "ModuleNotFoundError: No module named 'h5py'"), 3) + "--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[1,1],2]\n  Exit code:    1\n", 0},
		{"lost by its neighbours", ofRank(4, "rank R: step 1\n") + "rank 1: lost connection to rank 2\nrank 3: lost connection to rank 2\n" + raised("", keyError), 2},
		{"files of ranks", "-- out.0 --\nstep 1\n-- out.1 --\nstep 1\n" + raised("", keyError) + "-- out.2 --\nstep 1\n", 1},
		{"JAX tasks", "E0303 04:21:19.771 1 coordination_service.cc:488] The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:5\n", 5},
		{"heartbeat of a rank", ofRank(4, "[rankR]: step 1\n") + "[rank0]: RuntimeError: Timed out waiting 8000ms for recv operation to complete\nworker rank=3 last heartbeat 661.0 s ago\n", 3},
		{"locality", ofRank(4, "locality R of 4 ready\n") + "step 1\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  locality 2: cannot open file mesh.bin\n", 2},
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
