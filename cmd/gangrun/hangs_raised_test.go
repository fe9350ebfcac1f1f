package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestRaised checks the cause if a rank with mpi4py raises an exception and then waits in MPI_Finalize for the other
// ranks, which wait for it. The gang must end long before the limit for silent gangs, and the cause must be the
// exception.
func TestRaised(t *testing.T) {
	t.Parallel()
	needPython(t, "mpi4py")
	b := newBench(t)
	script := filepath.Join(b.dir, "train.py")
	if err := os.WriteFile(script, []byte(`from mpi4py import MPI
comm = MPI.COMM_WORLD
print("start", comm.rank, flush=True)
if comm.rank == 1:
    raise RuntimeError("boom")
comm.Barrier()
`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.start(nil, "--preflight", "off", "--retries", "0", "-n", "3", "--", python, script)
	if code := r.finish(); code == 0 {
		t.Error("exit code 0")
	}
	report := b.report()
	if len(report.Attempts) != 1 || report.Attempts[0].Cause == nil || report.Attempts[0].Hang == nil {
		t.Fatalf("%+v", report.Attempts)
	}
	if c := report.Attempts[0].Cause; c.Category != job.Traceback || c.Rank != 1 || !strings.Contains(c.Text, "RuntimeError: boom") {
		t.Errorf("cause %+v", c)
	}
}
