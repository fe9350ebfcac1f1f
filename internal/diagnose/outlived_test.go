package diagnose_test

import (
	"io"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/logset"
)

// TestOutlived checks jobs that ended well after a line that looks like their failure, and jobs that only seem to have
// ended well.
func TestOutlived(t *testing.T) {
	const head = "solver 3.2 starts\n  grid 64 x 64\n  scheme upwind\n"
	const steps = "step 1 loss 3\nstep 2 loss 2\nstep 3 loss 1\nstep 4 loss 1\n"
	const more = steps + "step 5 loss 1\nstep 6 loss 1\n"
	const raised = "Traceback (most recent call last):\n  File \"train.py\", line 8, in <module>\n    step()\nKeyError: 'label'\n"
	const rank0 = "[0] step 4 e 1\n[0] step 5 e 1\n[0] step 6 e 1\n[0] step 7 e 1\n[0] step 8 e 1\n"
	for name, c := range map[string]struct {
		log  string
		want job.Category
	}{
		"a second start":             {head + steps + raised + head + more + "solver: finished, 6 steps\n", ""},
		"a third start":              {head + steps + raised + head + steps + "residual is NaN at step 4, stopping\n" + head + more + "normal end of solver\n", ""},
		"a start by a script":        {"try 1\n" + head + steps + "Segmentation fault (core dumped)\ntry 2\n" + head + more + "try 2 went well\n", ""},
		"a start that gets further":  {head + steps + raised + head + more, ""},
		"a second start that fails":  {head + steps + raised + head + steps + raised, job.SemanticError},
		"a second start, a message":  {head + steps + raised + head + steps + "ERROR: mesh file m.msh not found\n", job.IncorrectInputs},
		"a start that gets nowhere":  {head + more + raised + head + "step 1 loss 3\n", job.SemanticError},
		"a code after a start":       {head + steps + raised + head + more + "solver: exit code 1\n", job.SemanticError},
		"fewer ranks":                {"[0]<stdout>:Epoch 0 loss 2\n[0]<stdout>:Epoch 1 loss 2\n[2]<stderr>:HorovodInternalError: ncclCommGetAsyncError: unhandled system error\n[0]<stderr>:rolling back to last commit, resetting with size 2\n[0]<stdout>:Epoch 2 loss 2\n[0]<stdout>:Epoch 3 loss 1\n[0]<stdout>:Epoch 4 loss 1\n[0]<stdout>:Training finished\n", ""},
		"a communicator that shrank": {"rank 0: step 1\nrank 1: step 1\nrank 2: step 1\nrank 2: Segmentation fault\nrank 0: shrinking communicator to 2 ranks\nrank 0: step 2\nrank 1: step 2\nrank 0: step 3\nrank 1: step 3\nrank 0: all 3 steps done\n", ""},
		"a shrink in vain":           {"rank 0: step 1\nrank 1: step 1\nrank 2: step 1\nrank 2: Segmentation fault\nrank 0: shrinking communicator to 2 ranks\nrank 0: ERROR: shrink failed, giving up\n", job.InvalidMemoryAccess},
		"all say that they are done": {"[1,0]<stdout>:step 1\n[1,1]<stdout>:step 1\n[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"a.py\", line 3, in <module>\n[1,1]<stderr>:    d[\"x\"]\n[1,1]<stderr>:KeyError: 'x'\n[1,1]<stdout>:rank 1 of 2 done, rc 0\n[1,0]<stdout>:rank 0 of 2 done, rc 0\n", ""},
		"one does not say it":        {"[1,0]<stdout>:step 1\n[1,1]<stdout>:step 1\n[1,2]<stdout>:step 1\n[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"a.py\", line 3, in <module>\n[1,1]<stderr>:    d[\"x\"]\n[1,1]<stderr>:KeyError: 'x'\n[1,2]<stdout>:rank 2 of 3 done, rc 0\n[1,0]<stdout>:rank 0 of 3 done, rc 0\n", job.SemanticError},
		"its fallback":               {"[0] step 1 e 1\n[0] step 2 e 1\n[0] step 3 e 1\n[1] malloc(35184372088832): Cannot allocate memory -- falling back to out-of-core sort\n" + rank0 + "[0] plasma: normal end, 8 cycles\n", ""},
		"what it leaves out":         {"[0] step 1 e 1\n[0] step 2 e 1\n[0] step 3 e 1\n[3] ERROR: probe send failed: MPI_ERR_RANK: invalid rank; neighbour removed from the list\n" + rank0 + "[0] plasma: normal end, 8 cycles\n", ""},
		"its fallback, and an end":   {"[0] step 1 e 1\n[0] step 2 e 1\n[0] step 3 e 1\n[1] malloc(35184372088832): Cannot allocate memory -- falling back to out-of-core sort\n[1] terminate called after throwing an instance of 'std::bad_alloc'\n[1]   what():  std::bad_alloc\n", job.CPUOOM},
		"a result after it":          {"step 1 of the embedding\nOpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily unavailable\nembedding of 40,000 docs written\n", ""},
		"threads, and no result":     {"step 1 of the embedding\nOpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily unavailable\n", job.LaunchError},
		"the directory of a job":     {"slurmstepd: error: couldn't chdir to `/home/old': No such file or directory: going to /tmp instead\nEpoch 2: 100%|####| 90/90 [00:21<00:00, 4.2it/s]\n`Trainer.fit` stopped: `max_epochs=3` reached.\n", ""},
		"some requests":              {"ERROR 05-06 10:00:00 [serving.py:201] Error with model error=BadRequestError: maximum context length is 4096 tokens\n=== Benchmark Result ===\nSuccessful requests:                     997       \nFailed requests:                         3         \nRequest throughput (req/s):              11.20     \n====\n(APIServer pid=1) INFO:     Application shutdown complete.\n", ""},
		"all requests":               {"ERROR 05-06 10:00:00 [serving.py:201] Error with model error=BadRequestError: maximum context length is 4096 tokens\n=== Benchmark Result ===\nSuccessful requests:                     0       \nFailed requests:                         1000         \nbench: exit code 1\n", job.SemanticError},
		"a helper of the script":     {steps + "validation ok, model uploaded\njob.sh: line 4: 11568 Killed                  ( exec -a nvidia-smi-logger sleep 60 )\nmonitor ended with 137\n", ""},
		"another helper":             {steps + "results written to out.csv\n./run.sh: line 12: 4411 Terminated              tail -F train.log > /dev/null\n", ""},
		"no helper":                  {steps + "./run.sh: line 12: 4411 Killed              python train.py --steps 100\n", job.Killed},
		"an old record":              {steps + "GPU 3: Xid 94 (contained ECC error) seen 6 days ago\nall 4 steps done\n", ""},
		"an old record, and no end":  {steps + "node note: last GPU has fallen off the bus 3 weeks ago\n" + raised, job.SemanticError},
		"what a report is about":     {"{\"t\": 1.1, \"event\": \"step\", \"step\": 1}\n{\"t\": 1.2, \"event\": \"step\", \"step\": 2}\n{\"t\": 1.3, \"event\": \"cluster\", \"count\": 22, \"sample\": \"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\"}\n{\"t\": 1.4, \"event\": \"report\", \"path\": \"out/weekly.html\"}\n", ""},
		"failed fits":                {steps + "/x/_validation.py:378: FitFailedWarning: \n3 fits failed out of a total of 6.\n3 fits failed with the following error:\n" + raised + "\n  warnings.warn(some_fits_failed_message, FitFailedWarning)\nbest {'C': 1} 0.589\n", ""},
		"failed fits, then an error": {steps + "3 fits failed with the following error:\n" + raised + "\nTraceback (most recent call last):\n  File \"train.py\", line 30, in <module>\n    main()\nValueError: All the 6 fits failed.\n", job.SemanticError},
		"a helper in Python":         {"Traceback (most recent call last):\n  File \"<string>\", line 5, in <module>\nOSError: [Errno 98] Address already in use\nrendezvous on 29882\n[worker 0] batch 0: norm 1.0\n[worker 0] batch 1: norm 0.5\n[worker 0] batch 2: norm 0.3\n[worker 0] batch 3: norm 0.2\n[worker 0] batch 4: norm 0.2\n[worker 0] done\n", ""},
		"an error that R keeps":      {"> res <- mclapply(folds, fit, mc.cores=8)\n> res[[3]]\n[1] \"Error in solve.default(H) : \\n  Lapack routine dgesv: system is exactly singular: U[7,7] = 0\\n\"\n> res[bad] <- lapply(folds[bad], fit_ridge)\n> saveRDS(res, \"cv.rds\")\n", ""},
		"a message and done":         {steps + "ERROR: mesh file m.msh not found\ndone\n", job.IncorrectInputs},
		"a message, a job's end":     {steps + "ERROR: mesh file m.msh not found\nJob finished at Tue Mar  3 11:02:59 CET 2026\n", job.IncorrectInputs},
		"a message, a script's end":  {steps + "ERROR: mesh file m.msh not found\nCleaning up ... done\nscript completed\n", job.IncorrectInputs},
		"a message, logs saved":      {steps + "forrtl: severe (24): end-of-file during read, unit 11, file /w/in.dat\nLogs saved to /archive/7\n", job.IncorrectInputs},
		"no memory, and done":        {steps + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nEnd of job\n", job.GPUOOM},
		"no space, copied":           {steps + "write error: No space left on device\ncopying results back ... ok\nall done\n", job.DiskFull},
		"an abort, and a time":       {steps + "Abort(1) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3\nfinished: Tue Mar 3\n", job.MPIError},
		"a node that is lost":        {steps + "srun: error: Node failure on n7\nJob step completed\n", job.HostLost},
		"no loss any more":           {steps + "loss is nan at step 5, stopping training\nmodel saved to last.pt\n", job.ModelDiverged},
	} {
		logs := []logset.Log{{Name: "run.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.log)), nil }}}
		e, err := logset.Read(t.Context(), logs, rules.Standard(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := diagnose.Logs(rules.Standard(), e); got.Category != c.want {
			t.Errorf("%s: got %q (%s: %s), want %q", name, got.Category, got.Signature, got.Text, c.want)
		}
	}
}
