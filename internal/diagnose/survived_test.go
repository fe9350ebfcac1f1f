package diagnose_test

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/job"
)

// TestGoesOn checks that the lines after a sign of failure show whether the program went on. The words of the script
// that started the program do not show it.
func TestGoesOn(t *testing.T) {
	const steps = "step 1 loss 3\nstep 2 loss 2\nstep 3 loss 1\n"
	const raised = "Traceback (most recent call last):\n  File \"train.py\", line 8, in <module>\n    step()\nKeyError: 'label'\n"
	for name, c := range map[string]struct {
		log  string
		want job.Category
	}{
		"uncaught":                    {steps + raised, job.SemanticError},
		"an epilogue":                 {steps + raised + "Cleaning up local scratch ...\nJob finished at Tue Mar  3 11:02:59 CET 2026\n\nreal\t0m41.220s\n", job.SemanticError},
		"one last word":               {steps + raised + "Collecting logs... done.\n", job.SemanticError},
		"usage":                       {steps + raised + "CPU Efficiency: 3.21% of 04:16:00 core-walltime\nwandb: Synced 5 W&B file(s)\n", job.SemanticError},
		"work after it":               {steps + raised + "step 4 loss 1\nstep 5 loss 1\nstep 6 loss 1\n", ""},
		"logged again and again":      {"ERROR:root:fold 1 dropped\n" + raised + "ERROR:root:fold 2 dropped\n" + raised + "17 folds used, 2 dropped\n", ""},
		"a name and numbers":          {steps + "permission denied    2  1  57\nCUDA out of memory 0.545\n", ""},
		"how the program was started": {"git: 7f3e1c9 (main) \"fix crash when the disk is full\"\n" + steps, ""},
		"a complaint and a farewell":  {steps + "w1 fsync of part 3: No space left on device\nw1 leaving\n", job.DiskFull},
		"all ranks leave alike":       {"[0] a 1\n[1] a 1\n[0] b 2\n[1] b 2\n[1] cannot unlink /tmp/x: No such file or directory\n[0] leaving\n[1] leaving\n", ""},
		"evicted":                     {"001 (7.0.0) 2026-02-02 06:01:00 Job executing on host: <10.0.0.9:9618>\n004 (7.0.0) 2026-02-02 08:00:11 Job was evicted.\n", job.Preempted},
		"cannot resume":               {"reading state\nERROR: state.3: checkpoint file is truncated\ncannot resume\n", job.CheckpointError},
		"an early stop":               {steps + "EarlyStopping: val_loss did not improve for 10 checks, stopping the run\n", ""},
		"an early stop, and a code":   {steps + "EarlyStopping: val_loss did not improve for 10 checks, stopping the run\nsweep: exit status 3\n", job.StoppedEarly},
		"the first step of a script":  {"curl: (7) Failed to connect to h1 port 8080: Connection refused\nFileNotFoundError: [Errno 2] No such file or directory: 'a.pth'\n", job.NetworkError},
		"an early stop with its code in the same line": {steps + "Early stopping: loss has not improved for 10 checks, stopping all ranks (exit status 4)\nbest checkpoint kept\n", job.StoppedEarly},
		"a test of CTest that hangs": {"4/9 Test #4: grid ......   Passed    0.41 sec\n5/9 Test #5: io ........***Timeout 300.07 sec\n6/9 Test #6: regrid ....   Passed    1.02 sec\n89% tests passed, 1 tests failed out of 9\n" +
			"The following tests FAILED:\n\t  5 - io (Timeout)\nErrors while running CTest\nERROR: Job failed: exit code 8\n", job.Hang},
		"a step of GitHub that may fail":          {steps + "##[group]Run tools/lint || true\ntools/lint: line 9: codespell: command not found\nPost job cleanup.\nCleaning up orphan processes\n", ""},
		"a step of GitHub that fails":             {steps + "##[group]Run tools/lint\ntools/lint: line 9: codespell: command not found\n##[error]Process completed with exit code 127.\nPost job cleanup.\nCleaning up orphan processes\n", job.LaunchError},
		"CTest's log of a test that fails well":   {"5/5 Testing: io_enospc\nwrite /dev/full: No space left on device\nok: the writer says so\n<end of output>\nTest Passed.\n", ""},
		"CTest's log of a test that fails":        {"5/5 Testing: io\nwrite /dev/sda: No space left on device\n<end of output>\nTest Failed.\n", job.DiskFull},
		"a pipeline of GitHub that was cancelled": {steps + "##[error]The operation was canceled.\nPost job cleanup.\n", job.Cancelled},
		"a pipeline of GitLab that was cancelled": {steps + "ERROR: Job failed: canceled\n", job.Cancelled},
		"the last output was long ago":            {steps + "scontrol: job 7 RUNNING\nlast output 9 h ago\n", job.Hang},
		"a daemon of mpirun":                      {"A daemon (pid 4711) died unexpectedly with status 127 while attempting\nto launch so we are aborting.\n", job.MPIRuntime},
		"a script that goes on":                   {"run.sh: line 14: activate: No such file or directory\nTraceback (most recent call last):\n  File \"a.py\", line 6, in <module>\n    import netCDF4\nModuleNotFoundError: No module named 'netCDF4'\n", job.ImportError},
		"a script that does not go on":            {"loading modules\nrun.sh: line 14: /data/env.sh: No such file or directory\n", job.LaunchError},
		"tests that passed beside one that failed": {"===== FAILURES =====\n    def test_halo():\n>       assert b == 2.5\nE       assert 3.0 == 2.5\n\ntest_mpi.py:13: AssertionError\n=== short test summary info ===\n" +
			"PASSED test_mpi.py::test_scatter[1]\nPASSED test_mpi.py::test_scatter[7]\nFAILED test_mpi.py::test_halo - assert 3.0 == 2.5\n=== 1 failed, 2 passed in 0.38s ===\n", job.Assertion},
		"GROMACS asks about the disk":          {"Fatal error:\nCheckpoint file is corrupted or truncated, or maybe you are out of disk space?\n", job.CheckpointError},
		"Fortran has no directory":             {"At line 301 of file output.f90 (unit = 40)\nFortran runtime error: Cannot open file 'OUT/fields_000100.bin': No such file or directory\n", job.OutputError},
		"C++ refuses a setting":                {"terminate called after throwing an instance of 'std::runtime_error'\n  what():  Config: key 'inlet.velocity' has 2 components, expected 3\n", job.IncorrectInputs},
		"a supervisor's words":                 {steps + "HANG: rank 3 has not reported progress since step 3 (1210 s). Dumping stacks and exiting.\n", job.Hang},
		"a supervisor's words, slow":           {steps + "Node a7 is 2.8x slower than its peers; draining the node and stopping the job.\n", job.Straggler},
		"a probe":                              {steps + raised + "probe with 4096 failed (exit code 1)\nstep 4 loss 1\nfinal status: success\n", ""},
		"a step that is tried again":           {"bwa: fail to open file 'x.fq.gz' : No such file or directory\nRuleException: exited with non-zero exit code.\nWill retry job map, attempt 2 of 3\nFinished job 1.\n5 of 5 steps (100%) done\n", ""},
		"a part of a test":                     {"test_io\nSegmentation fault (core dumped)\nchild crashed as it should\n3 tests, 0 failures\n", ""},
		"a job that was requeued":              {"year 1 smb 1\nyear 2 smb 1\nyear 3 smb 1\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO JOB REQUEUE ***\nyear 1 smb 1\nyear 2 smb 1\nyear 3 smb 1\nyear 4 smb 1\nyear 5 smb 1\nyear 6 smb 1\nyear 7 smb 1\nrun complete\n", ""},
		"a job that was cancelled":             {"year 1 smb 1\nyear 2 smb 1\nyear 3 smb 1\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n", job.Cancelled},
		"requeued, and accounted for":          {steps + "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE ***\n" + "71 NODE_FAIL 0:0\n71 COMPLETED 0:0\n", ""},
		"accounted for as failed":              {steps + "slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE ***\n" + "71 NODE_FAIL 0:0\n71 FAILED 1:0\n", job.HostLost},
		"a crash in a test":                    {"18: Segmentation fault (core dumped)\n18/18 Test #18: death.segv ...   Passed    0.23 sec\n100% tests passed, 0 tests failed out of 18\n", ""},
		"tests before a crash":                 {"100% tests passed, 0 tests failed out of 18\n" + steps + "Segmentation fault (core dumped)\n", job.InvalidMemoryAccess},
		"a script of the shell":                {"bash: /opt/site/motd.sh: No such file or directory\n" + steps, ""},
		"samples that are left out":            {steps + raised + "sample 4 rejected\ndistances.npy (39 of 40 pairs)\n", ""},
		"a closing that is refused":            {steps + "step 4/4 loss 1\n[W TCPStore.cpp:122] [c10d] recvValueWithTimeout failed: Connection reset by peer\n", ""},
		"a count of a monitor":                 {steps + "best point 17 in best.json\n(raylet) [2026-01-01 10:00:00,1 E 3 3] (raylet) node_manager.cc:3040: 1 Workers killed due to memory pressure (OOM)\n", ""},
		"a notice that is not sent":            {steps + "step 4/4 loss 1\nERROR: could not send mail: Connection refused\n", ""},
		"R goes on":                            {"> m <- glm(y ~ x)\nError in glm.fit(x, y) : object 'x' not found\n> saveRDS(res)\n", ""},
		"R ends":                               {"Error in glm.fit(x, y) : object 'x' not found\nExecution halted\n", job.SemanticError},
		"valgrind":                             {"==9== Invalid read of size 4\nenergy = -1.2\n==9== ERROR SUMMARY: 2 errors from 2 contexts\n", ""},
		"what a program tells":                 {steps + "I0609 11:02:19.118031 140211 bridge.py:863] Unable to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory\n", ""},
		"a worker that is not done":            {"worker 0: superstep 1\nworker 1: superstep 1\nException in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\tat A.main(A.java:5)\nworker 0: superstep 2\nworker 0: superstep 3\nworker 0: done\n", job.CPUOOM},
		"codes of several programs":            {"chain 1: ok\nError: prior has no mass on x\nExecution halted\nchain 3: ok\nchain 1: status 0\nchain 2: status 1\nchain 3: status 0\n", job.Traceback},
		"a record in JSON":                     {"{\"lvl\":\"info\",\"msg\":\"start\"}\n{\"lvl\":\"fatal\",\"msg\":\"cannot parse config\",\"err\":\"yaml: line 3: mapping values are not allowed in this context\"}\n", job.IncorrectInputs},
		"a trace below a logger's tag":         {"worker-1 ERROR 10:01 [exec.py:1] Traceback (most recent call last):\nworker-1 ERROR 10:01 [exec.py:1]   File \"a.py\", line 3, in f\nworker-1 ERROR 10:01 [exec.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nRuntimeError: worker died, see root cause above\n", job.GPUOOM},
		"errors of HDF5":                       {"HDF5-DIAG: Error detected in HDF5 (1.14.0) thread 0:\n  #000: H5F.c line 620 in H5Fcreate(): unable to create file\n    major: File accessibility\n  #001: H5FDsec2.c line 352 in H5FD__sec2_open(): unable to open file: name = 'o.h5', errno = 13, error message = 'Permission denied', flags = 13\nsolver: cannot go on\n", job.PermissionError},
		"a file that HDF5 cannot create":       {"HDF5-DIAG: Error detected in HDF5 (1.14.0) thread 0:\n  #000: H5F.c line 620 in H5Fcreate(): unable to create file\n  #001: H5FDsec2.c line 352 in H5FD__sec2_open(): unable to open file: name = 'o.h5', errno = 2, error message = 'No such file or directory', flags = 13\nsolver: cannot go on\n", job.OutputError},
		"a message above a stack and abort":    {"FATAL: unknown keyword 'slover' in case.in\n#0  print_stack() at c.cpp:10\n#1  die() error at c.cpp:12\n[n4:77] *** Process received signal ***\n[n4:77] Signal: Aborted (6)\n[n4:77] Signal code:  (-6)\n", job.IncorrectInputs},
		"only abort":                           {"[n4:77] *** Process received signal ***\n[n4:77] Signal: Aborted (6)\n[n4:77] Signal code:  (-6)\n", job.CoreDump},
		"a message and another signal":         {"FATAL: unknown keyword 'slover' in case.in\n[n4:77] *** Process received signal ***\n[n4:77] Signal: Segmentation fault (11)\n", job.InvalidMemoryAccess},
		"a shifted traceback without its head": {steps + "      File \"a.py\", line 3, in f\n        b, h = x.shape\n    ValueError: too many values to unpack (expected 2)\n", job.SemanticError},
		"the representation of an exception":   {"Function:  fit\nkwargs:    {'n': 2}\nException: \"AssertionError('n must be even')\"\n", job.Assertion},
		"the title of a box":                   {"------------ STOPPED WITH ERROR -----------\n  In routine: advect at line: 77\n  CFL number exceeded, fatal\n  velocity is NaN\n-------------------------------------------\napplication called MPI_Abort(MPI_COMM_WORLD, 1) - process 4\n", job.ModelDiverged},
		"a help text, and work":                {strings.Repeat("-", 70) + "\nThe fabric could not be opened; another one will be used.\n\n  Local host: n1\n  Error: Operation not permitted (errno 1)\n" + strings.Repeat("-", 70) + "\n cycle 1 of 9\n cycle 2 of 9\n cycle 3 of 9\n", ""},
		"a help text, and the end":             {strings.Repeat("-", 70) + "\nThe solver failed to read its deck.\n\n  Deck: run.deck\n  Error: No such file or directory (2)\n" + strings.Repeat("-", 70) + "\n", job.IncorrectInputs},
		"Perl":                                 {"run 3 samples\nCan't call method \"name\" on an undefined value at run.pl line 4.\n", job.SemanticError},
		"a panic below a tag":                  {"[svc-1] panic: dial tcp: lookup store.local: no such host\n[svc-1] \n[svc-1] goroutine 1 [running]:\n[svc-1] main.main()\n", job.NetworkError},
		"a record of success":                  {"srun: error: n7: task 0: Exited with exit code 1\nepoch 1\n" + `:::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "success"}}` + "\n", ""},
		"a record of an abort":                 {"srun: error: n7: task 0: Exited with exit code 1\nepoch 1\n" + `:::MLLOG {"key": "run_stop", "value": null, "metadata": {"status": "aborted"}}` + "\n", job.Unknown},
		"others go on, one does not":           {"r0 sweep 1\nr1 sweep 1\nr2 sweep 1\nr0 sweep 2\nr1 sweep 2\nr2 sweep 2\n" + raised + "r0 sweep 3\nr2 sweep 3\nr0 sweep 4\nr2 sweep 4\nr0 sweep 5\nr2 sweep 5\n", job.SemanticError},
		"all come to their end":                {"r0 sweep 1\nr1 sweep 1\nr0 sweep 2\nr1 sweep 2\n" + raised + "r0 sweep 3\nr1 sweep 3\nr1 leaves\nr0 leaves\n", ""},
		"each goes on after an error":          {"r0 step 1\nr1 step 1\nr0 step 2\nr1 step 2\nr0 step 3\nr1 step 3\nERROR r1 record 7 is damaged\nr0 step 4\nr1 step 4\nr0 step 5\nr1 step 5\nr0 step 6\nr1 step 6\n", ""},
		"a file server that is back":           {steps + "[100.0] nfs: server s1 not responding, still trying\n[160.0] nfs: server s1 OK\n", ""},
		"a trial that is restored":             {"(raylet) A worker died or was killed while executing a task by an unexpected system error.\n2026-01-01 10:00:00,100 ERROR tune.py:1 -- Trial task failed for trial c1\n2026-01-01 10:00:01,100 INFO tune.py:2 -- Restoring trial c1 from checkpoint\nTrial c1 is at 20\nbest: 0.3\n", ""},
		"a service that only watches":          {"COMET ERROR: Failed to send telemetry: 502 Bad Gateway\n" + steps, ""},
		"a record of NCCL that goes on":        {"c4:91:102 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.5<41121> failed : Software caused connection abort\nc4:91:102 [0] NCCL INFO Call to connect returned Connection refused, retrying\nc4:91:102 [0] NCCL INFO comm 0x55 rank 0 nranks 2 - Init COMPLETE\n# size 8 busbw 9.1\n", ""},
		"an early stop with its code":          {steps + "sweep: no longer improving, stopping this point as hopeless\nsweep: exit status 3 (stopped early)\n", job.StoppedEarly},
		"waited in vain":                       {steps + "ERROR: allreduce 811 timed out after 600 s: waiting for rank 5\naborting\n", job.CollectiveTimeout},
		"an error of Nim":                      {steps + "Error: unhandled exception: mesh is empty [MeshError]\n", job.Traceback},
		"an error of Chapel":                   {steps + "uncaught TaskErrors: 1 errors: MeshError: two owners for face 81 --- mesh.chpl:212 thrown here\n", job.Traceback},
		"an error of C#":                       {steps + "Unhandled exception. System.InvalidTimeZoneException: no zone\n   at App.Main()\n", job.Traceback},
		"a message that ends in a verb":        {steps + "sampler: temperature ladder is not monotonic, aborting\n", job.SemanticError},
	} {
		if got := diagnose.Diagnose(job.Evidence{Lines: numbered(c.log)}); got.Category != c.want {
			t.Errorf("%s: got %q (%s), want %q", name, got.Category, got.Signature, c.want)
		}
	}
}

// numbered returns the lines of a log without ranks.
func numbered(log string) (lines []job.Line) {
	for i, text := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		lines = append(lines, job.Line{Rank: -1, File: "job.log", Line: i + 1, Text: text})
	}
	return lines
}
