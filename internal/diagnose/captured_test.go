package diagnose

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/telling"
	"github.com/gangrun/gangrun/internal/job"
)

// readLog reads a log of which only the name is known.
func readLog(name string, r io.Reader) ([]job.Line, error) {
	return logtext.Read(logtext.Origins([]string{name})[0], r, telling.Of(rules.Standard()))
}

// read returns the evidence in logs alone.
func read(t *testing.T, names ...string) job.Evidence {
	t.Helper()
	var e job.Evidence
	for _, name := range names {
		f, err := os.Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := readLog(name, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		e.Lines = append(e.Lines, lines...)
	}
	return e
}

// TestCaptured checks logs of real programs and of launchers. want is "category signature", and text is the end of the
// cause's text.
func TestCaptured(t *testing.T) {
	for _, c := range []struct {
		name, want string
		rank       int
		text       string
		artefact   string
	}{
		{"args.err", "incorrect-inputs argparse", -1, "unrecognized arguments: --learning-rate 0.1", "--learning-rate"},
		{"argtype.err", "incorrect-inputs argparse", -1, "argument --lr: invalid float value: 'fast'", "--lr"},
		{"assertion.err", "assertion python-assertion", -1, "AssertionError: batch 30 is not a multiple of 4 (assertion.py line 2 in check)", ""},
		{"attr.err", "semantic-error python-attribute-error", -1, "Did you mean: 'forward'? (attr.py line 2)", ""},
		{"badckpt.err", "checkpoint-error torch-damaged", -1, "failed finding central directory (badckpt.py line 7)", ""},
		{"badpickle.err", "incorrect-inputs bad-archive", -1, "pickle data was truncated (badpickle.py line 2)", ""},
		{"calledproc.err", "traceback child-failed", -1, "returned non-zero exit status 1. (calledproc.py line 2)", ""},
		{"chain-cause.err", "incorrect-inputs bad-json", -1, "ConfigError: config.json cannot be used, after JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 12 (char 11) (chain_cause.py line 7 in get)", ""},
		{"chain-context.err", "semantic-error python-value-error", -1, "ValueError: config lacks lr (chain_context.py line 5 in get)", ""},
		{"conv.err", "semantic-error torch-shape-mismatch", -1, "but got 1 channels instead (conv.py line 2)", ""},
		{"cudanone.err", "cuda-version no-cuda-build", -1, "Torch not compiled with CUDA enabled (cudanone.py line 2)", ""},
		{"custom.err", "traceback uncaught-exception", -1, "TrainingStopped: the plan says no (custom.py line 2)", ""},
		{"dtype.err", "semantic-error torch-dtype-mismatch", -1, "expected scalar type Float but found Double (dtype.py line 3 in train)", ""},
		{"emptyckpt.err", "checkpoint-error pickle-damaged", -1, "EOFError: Ran out of input (emptyckpt.py line 3)", ""},
		{"fromimport.err", "import-error import-name", -1, "(fromimport.py line 1)", "numpy"},
		{"full.err", "disk-full no-space", -1, "No space left on device (full.py line 3)", ""},
		{"gloo-hang-0.err", "collective-timeout gloo-timeout", -1, "Timed out waiting 4000ms for recv operation to complete (gloo.py line 21)", "recv"},
		{"gloo-kill-0.err", "network-error peer-closed", -1, "Connection reset by peer (gloo.py line 21)", "127.0.0.1"},
		{"gloo-monitored-0.err", "collective-timeout monitored-barrier", 1, "Rank 1 failed to pass monitoredBarrier in 2000 ms (gloo.py line 18)", ""},
		{"gloo-raise-1.err", "semantic-error python-value-error", -1, "ValueError: bad label 11 (gloo.py line 9)", ""},
		{"gloo-shape-0.err", "semantic-error collective-mismatch", -1, "op.preamble.length <= op.nbytes. 8 vs 4", ""},
		{"grad.err", "semantic-error torch-autograd", -1, "(grad.py line 3)", ""},
		{"group.err", "semantic-error python-value-error", -1, "ValueError: bad label 11 (group.py line 1)", ""},
		{"half.err", "semantic-error torch-dtype-mismatch", -1, "(half.py line 2)", ""},
		{"indent.err", "syntax-error python-syntax", -1, "IndentationError: unexpected indent (indent.py line 3)", ""},
		{"index.err", "semantic-error python-index-error", -1, "IndexError: list index out of range (index.py line 2)", ""},
		{"kbd.err", "cancelled interrupted", -1, "KeyboardInterrupt (kbd.py line 2)", ""},
		{"label.err", "semantic-error torch-target-range", -1, "Target 11 is out of bounds. (label.py line 2)", ""},
		{"loader.err", "semantic-error python-key-error", -1, "KeyError: 'dog' (loader.py line 7 in __getitem__)", ""},
		{"mem.err", "cpu-oom python-memory-error", -1, "and data type float64 (mem.py line 2)", ""},
		{"mem2.err", "cpu-oom torch-cpu-allocator", -1, "(mem2.py line 2)", "400000000000000"},
		{"mem3.err", "cpu-oom python-memory-error", -1, "MemoryError (mem3.py line 1)", ""},
		{"missing.err", "incorrect-inputs missing-file", -1, "/data/train/labels.csv not found. (missing.py line 3 in load)", "/data/train/labels.csv"},
		{"missing2.err", "incorrect-inputs missing-file", -1, "'/data/train/labels.csv' (missing2.py line 1)", "/data/train/labels.csv"},
		{"module.err", "import-error module-missing", -1, "No module named nosuchmod", "nosuchmod"},
		{"mppool.err", "semantic-error python-zero-division", -1, "integer division or modulo by zero (mppool.py line 2 in f)", ""},
		{"name.err", "semantic-error python-name-error", -1, "name 'lerning_rate' is not defined (name.py line 1 in train)", ""},
		{"nan.out", "model-diverged loss-not-finite", -1, "Loss is nan, stopping training", ""},
		{"noimport.err", "import-error module-missing", -1, "No module named 'sklearnx' (noimport.py line 1)", "sklearnx"},
		{"notimpl.err", "semantic-error python-not-implemented", -1, "(notimpl.py line 2)", ""},
		{"perm.err", "permission-error permission-denied", -1, "Permission denied: '/etc/shadow' (perm.py line 3)", "/etc/shadow"},
		{"pool.err", "semantic-error python-zero-division", -1, "integer division or modulo by zero (pool.py line 2 in f)", ""},
		{"port.err", "port-in-use address-in-use", -1, "Address already in use (port.py line 3)", ""},
		{"recursion.err", "traceback python-recursion", -1, "maximum recursion depth exceeded (recursion.py line 1 in f)", ""},
		{"refused.err", "network-error connection-refused", -1, "Connection refused (refused.py line 2)", ""},
		{"script.err", "incorrect-inputs script-missing", -1, "No such file or directory", "/home/ana/job/nofile.py"},
		{"segv.err", "invalid-memory-access segfault-trace", -1, "Fatal Python error: Segmentation fault (segv.py line 4 in train)", ""},
		{"singleton-daemon.log", "mpi-runtime mpi-singleton-daemon", -1, "ess_singleton_module.c at line 716", ""},
		{"singleton-orted.log", "mpi-runtime mpi-singleton-daemon", -1, "ess_singleton_module.c at line 572", ""},
		{"shape.err", "semantic-error torch-shape-mismatch", -1, "mat1 and mat2 shapes cannot be multiplied (4x32 and 64x10) (shape.py line 8 in forward)", ""},
		{"spawn.err", "semantic-error python-value-error", 1, "ValueError: bad label 11 (spawn.py line 4 in work)", ""},
		{"spawnkill.err", "killed worker-killed", 1, "process 1 terminated with signal SIGKILL (spawnkill.py line 7)", ""},
		{"statedict.err", "semantic-error torch-state-dict", -1, "the shape in current model is torch.Size([4, 4]). (statedict.py line 3)", ""},
		{"store0.err", "collective-timeout rendezvous-timeout", -1, "RuntimeError: Socket Timeout (gloo.py line 4)", ""},
		{"store1.err", "network-error store-unreachable", -1, "(127.0.0.1, 29998). (gloo.py line 4)", "127.0.0.1, 29998"},
		{"syntax.err", "syntax-error python-syntax", -1, "SyntaxError: '(' was never closed (syntax.py line 1)", ""},
		{"thread.err", "semantic-error python-key-error", -1, "KeyError: 'lr' (thread.py line 2 in work)", ""},
		{"torchsave.err", "output-error missing-output-directory", -1, "Parent directory /results/run1 does not exist. (torchsave.py line 2)", "/results/run1"},
		{"typeerr.err", "semantic-error python-type-error", -1, "(typeerr.py line 2)", ""},
		{"unicode.err", "incorrect-inputs bad-encoding", -1, "invalid continuation byte (unicode.py line 2)", ""},
		{"write.err", "output-error missing-output-directory", -1, "'/results/run1/metrics.json' (write.py line 2 in save)", "/results/run1/metrics.json"},
		{"zerodiv.err", "semantic-error python-zero-division", -1, "ZeroDivisionError: division by zero (zerodiv.py line 2 in rate)", ""},
		{"zipckpt.err", "incorrect-inputs bad-archive", -1, "File is not a zip file (zipckpt.py line 3)", ""},

		{"native-alloc.err", "cpu-oom native-out-of-memory", -1, "std::bad_alloc", ""},
		{"native-throw.err", "incorrect-inputs missing-file", -1, "std::runtime_error: cannot read mesh.dat", "mesh.dat"},
		{"native-oor.err", "semantic-error cpp-logic-error", -1, "__n (which is 7) >= this->size() (which is 3)", ""},
		{"native-dfree.err", "invalid-memory-access heap-corruption", -1, "free(): double free detected in tcache 2", ""},
		{"native-assert.err", "assertion c-assertion", -1, "Assertion `n > 0' failed.", "n > 0"},
		{"native-smash.err", "invalid-memory-access heap-corruption", -1, "*** stack smashing detected ***: terminated", ""},
		{"native-asan.err", "invalid-memory-access sanitizer", -1, "sp 0x7ff", "heap-buffer-overflow"},
		{"native-panic.err", "semantic-error panic-index", -1, "panic: index out of bounds: the len is 1 but the index is 7 (panic.rs line 1)", ""},
		{"native-assertrs.err", "assertion rust-assertion", -1, "panic: assertion `left == right` failed (assertrs.rs line 1)", ""},
		{"native-gopanic.err", "semantic-error panic-index", -1, "panic: runtime error: index out of range [7] with length 1 (gopanic.go line 3)", ""},
		{"native-gonil.err", "invalid-memory-access segfault-trace", -1, "invalid memory address or nil pointer dereference (gonil.go line 4)", ""},
		{"native-gocustom.err", "traceback go-panic", -1, "panic: no data (gocustom.go line 2)", ""},
		{"native-lib.err", "missing-library shared-library", -1, "libg.so: cannot open shared object file: No such file or directory", "libg.so"},
		{"bash-sh1.err", "launch-error command-not-found", -1, "trian: command not found", "trian"},
		{"dash-sh1.err", "launch-error command-not-found", -1, "trian: not found", "trian"},
		{"bash-sh2.err", "permission-error program-not-executable", -1, "./train.cfg: Permission denied", "./train.cfg"},
		{"bash-sh3.err", "invalid-memory-access sigsegv", -1, "ended by a segmentation fault, SIGSEGV (signal 11)", ""},
		{"dash-sh3.err", "invalid-memory-access sigsegv", -1, "ended by a segmentation fault, SIGSEGV (signal 11)", ""},
		{"bash-sh4.err", "killed sigkill", -1, "no record of a memory shortage was found", ""},

		{"mpirun-sigkill.log", "killed sigkill", 1, "rank 1 on n1: killed by SIGKILL (signal 9), which did not come from gangrun; no record of a memory shortage was found", ""},
		{"mpirun-wrapped.log", "invalid-memory-access sigsegv", 3, "rank 3 on proton: ended by a segmentation fault, SIGSEGV (signal 11)", ""},
		{"mpirun-exit.log", "semantic-error python-zero-division", 2, "rank 2: ZeroDivisionError: division by zero (train.py line 7 in main)", ""},
		{"mpirun-tagged.log", "semantic-error python-key-error", 1, "rank 1: KeyError: 'class' (train.py line 20 in main)", ""},
		{"mpirun-abort.log", "mpi-error mpi-abort", 1, "rank 1: MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", ""},
		{"prterun.log", "unknown exit-code", 3, "rank 3: ended with code 3, and nothing that it printed tells why; its output is in prterun.log", ""},
		{"hydra-segv.log", "invalid-memory-access sigsegv", -1, "n2: ended by a segmentation fault, SIGSEGV (signal 11)", ""},
		{"intelmpi-kill.log", "killed sigkill", 6, "rank 6 on node0009: killed by SIGKILL (signal 9), which did not come from gangrun; no record of a memory shortage was found", ""},
		{"torchrun-killed.log", "killed sigkill", 0, "rank 0 on n1: killed by SIGKILL (signal 9), which did not come from gangrun; no record of a memory shortage was found", ""},
		{"torchrun-raise.log", "semantic-error python-value-error", 1, "rank 1 on n1: ValueError: bad label 11 (train.py line 9)", ""},
		{"nccl-timeout.log", "collective-timeout nccl-timeout", -1, "before timing out.", "ALLREDUCE"},
		{"srun-oom.log", "cpu-oom batch-oom", 1, "rank 1 on nid001277: slurmstepd: error: Detected 1 oom_kill event in StepId=440575.0. Some of the step tasks have been OOM Killed.", ""},
		{"srun-raise.log", "semantic-error python-value-error", 2, "rank 2 on n2: ValueError: bad label 11 (train.py line 9)", ""},
		{"gangrun.log", "semantic-error python-value-error", 3, "rank 3 on h2: ValueError: bad label 11 (train.py line 9)", ""},
		{"slurm-killed.log", "killed sigkill", -1, "", ""},
		{"dmesg.log", "cpu-oom oom-killer", -1, "", ""},
		{"ray.log", "semantic-error python-zero-division", -1, "ZeroDivisionError: division by zero (train.py line 12 in f)", ""},
		{"rich.log", "semantic-error python-key-error", -1, "KeyError: 'class'", ""},
		{"tqdm.log", "semantic-error python-value-error", -1, "ValueError: bad label 11 (train.py line 9)", ""},
		{"accelerate.log", "gpu-oom cuda-out-of-memory", -1, "is free. (train.py line 33 in main)", ""},
		{"teardown.log", "semantic-error python-key-error", -1, "KeyError: 'class' (train.py line 33 in main)", ""},
		{"sysexit.err", " ", -1, "no known sign of a failure in the last 1 lines of 1 logs", ""},
		{"healthy.log", " ", -1, "no known sign of a failure in the last 6 lines of 1 logs", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diagnose(read(t, c.name))
			sane(t, got)
			if s := string(got.Category) + " " + got.Signature; s != c.want {
				t.Fatalf("got %s, want %s: %s", s, c.want, got.Text)
			}
			if got.Rank != c.rank || !strings.Contains(got.Text, c.text) || !strings.HasSuffix(got.Text, c.text) && c.name != "native-asan.err" || got.Artefact != c.artefact {
				t.Errorf("rank %d, text %q, artefact %q", got.Rank, got.Text, got.Artefact)
			}
			if len(got.Evidence) == 0 && got.Category != "" {
				t.Error("no evidence")
			}
		})
	}
}

// TestCaughtIsUnsure checks that a traceback that the program survived is not taken for a failure.
func TestCaughtIsUnsure(t *testing.T) {
	if c := Logs(rules.Standard(), read(t, "caught.out")); c.Looks != job.LooksSuccessful {
		t.Errorf("confidence %v in %s", c.Confidence, c.Text)
	}
}

// TestLogWithKernelLog checks that the log of a killed rank and the kernel's log of its host give one cause.
func TestLogWithKernelLog(t *testing.T) {
	c := Diagnose(read(t, "mpirun-sigkill.log", "dmesg.log"))
	if c.Signature != "oom-killer" || c.Rank != 1 || c.Confidence != 1 {
		t.Errorf("%s, rank %d, confidence %v: %s", c.Signature, c.Rank, c.Confidence, c.Text)
	}
	if last := c.Evidence[len(c.Evidence)-1]; last.File != "dmesg.log" || !strings.Contains(last.Text, "Killed process 4711") {
		t.Errorf("decisive line: %+v", last)
	}
}

// TestLogsOfGang checks the logs of both ranks of a gang. The rank that failed by itself is the root-cause rank, in
// whatever order the logs are read.
func TestLogsOfGang(t *testing.T) {
	for _, names := range [][]string{{"digits-fail.rank-0.err", "digits-fail.rank-1.err"}, {"digits-fail.rank-1.err", "digits-fail.rank-0.err"}} {
		c := Diagnose(read(t, names...))
		sane(t, c)
		if want := "rank 1: ValueError: Expected input batch_size (32) to match target batch_size (33). (train.py line 289 in train)"; c.Text != want || c.Signature != "torch-shape-mismatch" {
			t.Errorf("%s %q", c.Signature, c.Text)
		}
	}
	c := Diagnose(read(t, "digits-resume.rank-0.err", "digits-resume.rank-1.err"))
	sane(t, c)
	if c.Signature != "checkpoint-exception" || c.Category != job.CheckpointError || c.Artefact != "/home/ana/ck/ckpt-000020.pt" || c.Rank != 0 {
		t.Errorf("%s, rank %d, artefact %q: %s", c.Signature, c.Rank, c.Artefact, c.Text)
	}
}
