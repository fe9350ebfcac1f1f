//go:build soak

package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testimage"
)

// TestSoakImageDigits runs a training in an image of Debian on four hosts that do not have the image yet. It uses Open
// MPI with mpi4py, MPICH, and PyTorch without MPI. It kills a rank in the middle. The second attempt must end with the
// weights of an undisturbed training.
func TestSoakImageDigits(t *testing.T) {
	t.Run("openmpi", func(t *testing.T) { imageDigits(t, job.MPIOpenMPI, testimage.Debian(t), "digits-mpi/train.py") })
	t.Run("mpich", func(t *testing.T) { imageDigits(t, job.MPIMPICH, testimage.Debian(t), "digits-mpi/train.py") })
	t.Run("none", func(t *testing.T) { imageDigits(t, job.MPINone, testimage.Torch(t), "digits/train.py") })
}

// imageDigits runs a training with a program of the examples in an image.
func imageDigits(t *testing.T, family job.MPI, archive, program string) {
	bed := testhosts.Up(t, farHosts, testhosts.Containerd())
	for _, name := range []string{program, "digits/digits.csv.gz"} {
		data, err := os.ReadFile(filepath.Join("../../examples", name))
		if filepath.Base(name) == "train.py" {
			data = pausing(t, data)
		}
		path := filepath.Join(bed.Shared(), "examples", name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		writeProgram(t, path, data)
	}
	if family == job.MPIMPICH {
		module := filepath.Join(bed.Shared(), "examples", filepath.Dir(program), "mpi4py")
		if err := os.CopyFS(module, os.DirFS("testdata/mpich/mpi4py")); err != nil {
			t.Fatal(err)
		}
	}
	train := func(out string) *farRun {
		return startFarCommand(t, bed, "h1:2,h2:2,h3:2,h4:2", farRanks, family,
			[]string{"python3", "examples/" + program, "--epochs=4", "--batch=32", "--checkpoint-every=5", "--out=" + out},
			"--preflight", "full", "--image", archive, "--mount", bed.Shared()+":rw", "--checkpoint-dir", filepath.Join(bed.Shared(), "checkpoints"))
	}
	hold := filepath.Join(bed.Shared(), "hold.1")
	writeProgram(t, hold, nil)
	r := train("broken")
	if !r.await("step 12", func() bool { return bytes.Contains(r.log(0, "out"), []byte("\nstep 12/")) }) {
		t.Fatal("gangrun has ended")
	}
	victims, err := bed.Host(3).Processes("\x00RANK=5\x00")
	victims = slices.DeleteFunc(victims, func(p testhosts.Process) bool { return !strings.HasPrefix(p.Name, "python") })
	if err != nil || len(victims) != 1 {
		t.Fatalf("rank 5 is %v, %v", victims, err)
	}
	if err := syscall.Kill(victims[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await("the end of the attempt", func() bool {
		return slices.ContainsFunc(r.events(), func(e job.Event) bool { return e.Kind == job.KindVerdict })
	})
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	if code := r.finish(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	report := r.report()
	if len(report.Attempts) != 2 || report.Attempts[0].Cause == nil || report.Attempts[0].Cause.Category != job.Killed || report.Attempts[0].Cause.Rank != 5 || report.Attempts[1].ResumeFrom == "" {
		t.Errorf("%+v", report.Attempts)
	}
	if sent := "sending the image"; !strings.Contains(r.errs.String(), sent) {
		t.Errorf("it does not say %q", sent)
	}
	r.nothingLeft()
	noContainers(t, bed)

	if err := os.RemoveAll(filepath.Join(bed.Shared(), "checkpoints")); err != nil {
		t.Fatal(err)
	}
	again := train("whole")
	if code := again.finish(); code != 0 {
		t.Fatalf("exit code %d of a run that nobody disturbs", code)
	}
	if strings.Contains(again.errs.String(), "sending the image") {
		t.Error("the image was sent again")
	}
	broken, err := os.ReadFile(filepath.Join(bed.Shared(), "broken"))
	whole, err2 := os.ReadFile(filepath.Join(bed.Shared(), "whole"))
	if err != nil || err2 != nil || len(whole) == 0 || !bytes.Equal(broken, whole) {
		t.Errorf("the weights differ from those of an undisturbed run: %d and %d bytes (%v, %v)", len(broken), len(whole), err, err2)
	}
}
