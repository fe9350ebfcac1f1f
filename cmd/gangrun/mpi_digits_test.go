package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/job"
)

// mpiDigits returns a bench that has the example over MPI, and a function that returns the arguments to run it. The
// training is shorter than that of the example. The function adds options to its command.
func mpiDigits(t *testing.T) (*bench, func(options ...string) []string) {
	t.Helper()
	needPython(t, "numpy, mpi4py")
	b := newBench(t)
	for _, name := range []string{"digits-mpi/train.py", "digits-mpi/job.yaml", "digits/digits.csv.gz"} {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		path := filepath.Join(b.dir, "examples", name)
		if err == nil && filepath.Base(name) == "train.py" {
			data = pausing(t, data)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return b, func(options ...string) []string {
		return append([]string{"examples/digits-mpi/job.yaml", "--", python, "examples/digits-mpi/train.py", "--epochs=4", "--batch=64", "--checkpoint-every=5"}, options...)
	}
}

// TestMPIDigits kills a rank of the training over MPI, which runs with preflight and trial. The second attempt must
// end with exactly the weights of an undisturbed run.
func TestMPIDigits(t *testing.T) {
	t.Parallel()
	sharesNothing(t)
	b, args := mpiDigits(t)
	goOn := b.hold(1)
	r := b.start(nil, args("--out=broken")...)
	r.await("step 12", func() bool {
		logs, _ := filepath.Glob(filepath.Join(b.dir, "home/runs/*/attempts/1", job.LogName(0, "out")))
		if len(logs) != 1 {
			return false
		}
		log, err := os.ReadFile(logs[0])
		return err == nil && strings.Contains(string(log), "\nstep 12/")
	})
	if !r.strike(r.started(1, 2), unix.SIGKILL) {
		t.Fatal("rank 2 is gone")
	}
	if code := r.finish(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	goOn()
	r.gone()
	report := b.report()
	if report.State != job.StateSucceeded || len(report.Attempts) != 2 {
		t.Fatalf("state %s after %d attempts, want success after 2", report.State, len(report.Attempts))
	}
	first, second := report.Attempts[0], report.Attempts[1]
	if first.Cause == nil || first.Cause.Category != job.Killed || first.Cause.Rank != 2 {
		t.Errorf("attempt 1: cause %+v, want rank 2 killed", first.Cause)
	}
	var step int64
	if _, err := fmt.Sscanf(filepath.Base(second.ResumeFrom), "ckpt-%d.npz", &step); err != nil || step < 10 {
		t.Fatalf("attempt 2 resumed from %q, want the checkpoint of step 10 or later", second.ResumeFrom)
	}
	want := fmt.Sprintf("resumed from %s at step %d\nstep %d/24 ", second.ResumeFrom, step, step+1)
	if got := said(t, &second, 0); !strings.Contains(got, want) {
		t.Errorf("rank 0 did not say %q:\n%s", want, got)
	}
	hashes := map[string]bool{}
	for rank := range 4 {
		found := regexp.MustCompile(`(?m)^rank \d weights sha256 ([0-9a-f]{64})$`).FindStringSubmatch(said(t, &second, rank))
		if found == nil {
			t.Fatalf("rank %d has no weights", rank)
		}
		hashes[found[1]] = true
	}
	if len(hashes) != 1 {
		t.Errorf("the ranks have %d kinds of weights", len(hashes))
	}

	if err := os.RemoveAll(filepath.Join(b.dir, "examples/digits-mpi/checkpoints")); err != nil {
		t.Fatal(err)
	}
	undisturbed := b.start(nil, append([]string{"--preflight", "off"}, args("--out=whole")...)...)
	if code := undisturbed.finish(); code != 0 {
		t.Fatalf("exit code %d of a run that nobody disturbs", code)
	}
	undisturbed.gone()
	if len(b.file("whole")) == 0 || b.file("whole") != b.file("broken") {
		t.Errorf("the weights differ from those of an undisturbed run: %d and %d bytes", len(b.file("broken")), len(b.file("whole")))
	}
}
