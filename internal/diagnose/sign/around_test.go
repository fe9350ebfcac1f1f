package sign_test

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// TestAround checks that the lines around a message that says little tell the category.
func TestAround(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a library says it first":     {"fwrite: wrote 4096 of 65536 bytes\nError: state not written", "no-space"},
		"NetCDF says it first":        {"NetCDF: Variable not found: tas\nERROR: reading of forcing failed", "bad-format"},
		"a message alone":             {"step 3\nERROR: reading of forcing failed", "program-error"},
		"a restart file":              {"reading restart file rst.0040\nError: file rst.0040 is truncated", "checkpoint-exception"},
		"a mesh file":                 {"reading mesh file m.0040\nError: file m.0040 is truncated", "program-input"},
		"a backtrace names it":        {"Fortran runtime error: Unformatted file structure has been corrupted\n\nError termination. Backtrace:\n#5  0x55 in __solver_mod_MOD_read_restart", "checkpoint-exception"},
		"another backtrace":           {"Fortran runtime error: Unformatted file structure has been corrupted\n\nError termination. Backtrace:\n#5  0x55 in __solver_mod_MOD_read_mesh", "fortran-runtime"},
		"what Java wrote":             {"Exception in thread \"main\" java.nio.file.NoSuchFileException: x/p3\n\tat java.base/java.nio.file.Files.newOutputStream(Files.java:2)", "missing-output-directory"},
		"what Java read":              {"Exception in thread \"main\" java.nio.file.NoSuchFileException: x/p3\n\tat java.base/java.nio.file.Files.newInputStream(Files.java:2)", "missing-file"},
		"stopifnot of R":              {"Error in f(x) : rate must be positive\nCalls: f -> stopifnot\nExecution halted", "python-assertion"},
		"stop of R":                   {"Error in f(x) : the chain is stuck\nCalls: f\nExecution halted", "uncaught-exception"},
		"what may have been":          {"The node with address 10.0.0.9 has been marked dead because it missed too many heartbeats. This can happen when it is preempted by another job.", "host-reported-lost"},
		"MPI's code in a message":     {"Error: MPI_Win_attach returned MPI_ERR_RMA_ATTACH", "mpi-call"},
		"a GPU's code in a message":   {"Fatal: hipMallocAsync failed at grid.cpp:88: hipErrorOutOfMemory", "cuda-out-of-memory"},
		"errno in a message":          {"3: ERROR: cannot make /data/x.h5 (errno 13)", "permission-denied"},
		"a solver that blew up":       {"Ux: residual = 3.1e+11\nProgram received signal SIGFPE: Floating-point exception", "solution-diverged"},
		"a solver that did not":       {"Ux: residual = 3.1e-11\nProgram received signal SIGFPE: Floating-point exception", "sigfpe"},
		"the last words":              {"step 3\ngridlib: assert failed: ncell > 0, file part.c\nMPI_ABORT was invoked on rank 3", "c-assertion"},
		"words that are not the last": {"step 3\ngridlib: assert failed: ncell > 0, file part.c\nstep 4 went well", ""},
		"an exception without a rule": {"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nlib.WriteFailed: block 7: [Errno 122] x", "disk-quota"},
	} {
		found := sign.Find(sign.Text{Lines: strings.Split(c.text, "\n"), Reason: func(int) job.Reason { return job.ReasonNone }}, rules.Standard())
		all := found.Signs
		if found.Message != nil {
			all = append(all, found.Message)
		}
		got := ""
		if len(all) > 0 {
			got = all[len(all)-1].Rule.Signature
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
