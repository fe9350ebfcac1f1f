package diagnose_test

import (
	"io"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/logset"
)

// TestEnds checks logs of jobs that went on after what looks like a failure, and logs of failed jobs whose script went
// on.
func TestEnds(t *testing.T) {
	const it = "Iter 10 | loss 2.1 | lr 1e-4\nIter 20 | loss 2.0 | lr 1e-4\nIter 30 | loss 1.9 | lr 1e-4\nIter 40 | loss 1.8 | lr 1e-4\n"
	const it2 = "Iter 50 | loss 1.7 | lr 1e-4\nIter 60 | loss 1.6 | lr 1e-4\nIter 70 | loss 1.5 | lr 1e-4\nIter 80 | loss 1.5 | lr 1e-4\n"
	const tb = "Traceback (most recent call last):\n  File \"/app/data.py\", line 88, in __getitem__\n    return self.read(i)\n  File \"/app/io.py\", line 12, in read\n    raise IOError('bad')\nOSError: [Errno 5] Input/output error: 'shard-7.tar'\n"
	for name, c := range map[string]struct {
		log  string
		fail bool
	}{
		"slurm requeue":       {"Starting trainer v2\nworld size 4\n" + it + "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-05-05T10:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\nStarting trainer v2\nworld size 4\nResuming from step 40\n" + it2 + "Training complete. Final loss 1.5\n", false},
		"oom then smaller":    {it + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nOOM at batch size 64, trying batch size 32\n" + it2 + "best val acc 0.81\n", false},
		"kernel oom others":   {it + it2 + "Training finished\n[88123.1] Out of memory: Killed process 991 (chrome) total-vm:123kB, anon-rss:99kB\n", false},
		"timeout fetch":       {it + "urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='hub', port=443): Read timed out. (read timeout=10)\nUsing cached copy of tokenizer.json\n" + it2 + "saved to out/model.pt\n", false},
		"tb logged, uses old": {it + "WARNING: could not read shard, keeping previous batch\n" + tb + it2 + "eval loss 1.4\nDone.\n", false},
		"tb with handled":     {it + tb + "bad shard replaced by shard-8.tar\n" + it2 + "Done, 80 iterations.\n", false},
		"mpi warn btl":        {"[n1:123] mca_btl_tcp_endpoint: connect() to 172.17.0.1:1024 failed: No route to host (113)\n" + it + it2 + "Loop time of 81.2 on 8 procs for 80 steps\nTotal wall time: 0:01:31\n", false},
		"k8s restart":         {"Booting trainer\nmesh 2x2\n" + it + "Error: container trainer exited with code 137\nBack-off restarting failed container\nBooting trainer\nmesh 2x2\n" + it + it2 + "trainer: all 80 iterations done\n", false},
		"port next":           {"WARNING: port 29500 in use (bind: Address already in use), using 29501\n" + it + it2 + "finished training\n", false},
		"nccl ib warn":        {"n1:1:2 [0] NCCL WARN NET/IB : Got completion from peer with status=12 opcode=0 len=0 vendor err 129\n" + it + it2 + "Finished in 12 s\n", false},
		"segv in test":        {"test_crash_handler ... Segmentation fault (core dumped)\nok\ntest_two ... ok\nRan 2 tests in 0.1s\n\nOK\n", false},
		"checkpoint corrupt":  {"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\nlast.ckpt is damaged, loading previous checkpoint step_30.ckpt\n" + it2 + "Training done\n", false},
		"monitor alert":       {it + "[monitor] alert: GPU 3 temperature 91C, clocks throttled\n[monitor] rank 3 step time 2.1x median\n[monitor] alert cleared\n" + it2 + "training finished after 80 iterations\n", false},
		"wandb down":          {it + "wandb: ERROR Error uploading: 500 Server Error\nwandb: Network error (ConnectionError), entering retry loop.\n" + it2 + "Saved model to m.pt\n", false},
		"slurm step fails":    {it + it2 + "model written to out.pt\nsrun: error: n2: task 0: Exited with exit code 1\nplotting failed, not needed\n== job complete, exit 0\n", false},
		"retry loop":          {"attempt 1/3: ssh: connect to host n7 port 22: Connection refused\nattempt 2/3: ssh: connect to host n7 port 22: Connection refused\nattempt 3/3: connected\n" + it + "Finished successfully\n", false},
		"grid search oom":     {"config 1: acc 0.7\nconfig 2: RuntimeError: CUDA out of memory. Tried to allocate 4 GiB\nconfig 3: acc 0.8\nconfig 4: acc 0.75\nbest: config 3 (acc 0.8)\n", false},
		"expected ex":         {"checking that bad input is rejected\n" + tb + "rejected as expected\nchecks passed: 12/12\n", false},
		"disk full cleanup":   {it + "OSError: [Errno 28] No space left on device: 'ckpt/step40.pt'\nremoved 3 old checkpoints, saved ckpt/step40.pt\n" + it2 + "run finished, best loss 1.5\n", false},
		"ray retries":         {it + "(raylet) Task train failed due to oom. There are infinite oom retries remaining, so the task will be retried.\n" + it2 + "Training completed after 8 iterations\n", false},
		"lustre evict":        {it + "Lustre: work-OST0011: Connection to work-OST0011 was lost; in progress operations using this service will wait for recovery to complete\nLustre: work-OST0011: Connection restored\n" + it2 + "normal end of execution\n", false},
		"node down spare":     {it + "node n7 is down, replaced by spare n9\n" + it2 + "done, 80 iterations\n", false},
		"divergence recover":  {it + "loss is NaN at step 41: skipping update and halving lr\n" + it2 + "final loss 1.5\n", false},
		"preempt resume":      {it + "SIGTERM received, saving checkpoint\ncheckpoint saved at step 40\nresumed from checkpoint step 40\n" + it2 + "training complete\n", false},
		"perm":                {"mkdir: cannot create directory '/scratch/x': Permission denied\nfalling back to /tmp\n" + it + it2 + "results in /tmp/out.csv\n", false},
		"missing opt lib":     {"ImportError: libnvinfer.so.8: cannot open shared object file: No such file or directory\nTensorRT not available, continuing in eager mode\n" + it + it2 + "accuracy: 0.91\n", false},
		"atexit":              {it + it2 + "Training finished.\nException ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"pool.py\", line 271, in __del__\nOSError: [Errno 9] Bad file descriptor\n", false},
		"straggler":           {it + "WARNING rank 3 is 1.8x slower than median\n" + it2 + "epoch 1 done: loss 1.5\nall 1 epochs done\n", false},
		"core of helper":      {it + it2 + "model exported to m.onnx\n./job.sh: line 9: 812 Segmentation fault      (core dumped) ./viewer --headless out.vtk\nplot skipped\njob ok\n", false},
		"steps reached":       {"max_steps: 80\n" + it + "ERROR: logger: disk quota exceeded while writing events file\n" + it2, false},
		// The following jobs have failed.
		"F tb end":      {it + tb, true},
		"F tb epilogue": {it + tb + "Job ended\nDuration: 12 s\n", true},
		"F oom script":  {it + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nresults copied to /archive\n", true},
		"F nan":         {it + "loss is NaN at step 41, aborting\nsaved crash dump to nan.pt\n", true},
		"F kernel oom":  {it + "[88123.1] Out of memory: Killed process 991 (python3) total-vm:123kB, anon-rss:99kB\nKilled\n", true},
		"F msg":         {it + "Error: could not open restart file r.41\nTotal wall time: 0:01:31\n", true},
		"F port":        {"RuntimeError: The server socket has failed to listen: [Errno 98] Address already in use\nrun.sh finished\n", true},
		"F mixed":       {"[rank0] " + "step 1\n[rank1] step 1\n[rank2] step 1\n[rank0] step 2\n[rank1] step 2\n[rank2] step 2\n[rank1] OSError: [Errno 5] Input/output error: 'x'\n[rank0] step 3\n[rank2] step 3\n[rank0] done\n[rank2] done\n", true},
		"F second":      {"Booting trainer\nmesh 2x2\n" + it + tb + "Booting trainer\nmesh 2x2\n" + it + tb, true},
		"F lib":         {"./app: error while loading shared libraries: libmkl.so.2: cannot open shared object file: No such file or directory\nend of script\n", true},
		"F ckpt":        {"loading last.ckpt\nRuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\nupload of logs done\n", true},
		"F disk":        {it + "OSError: [Errno 28] No space left on device\nFinished at 12:00:01\n", true},
		"F nccl":        {it + "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:12, remote process exited or there was a network error\nall workers done\n", true},
	} {
		logs := []logset.Log{{Name: "run.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.log)), nil }}}
		e, err := logset.Read(t.Context(), logs, rules.Standard(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := diagnose.Logs(rules.Standard(), e); (got.Category != "") != c.fail {
			t.Errorf("%s: got %q (%s: %s)", name, got.Category, got.Signature, got.Text)
		}
	}
}
