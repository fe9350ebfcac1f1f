package controller

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

func TestAsker(t *testing.T) {
	spec := job.Default()
	spec.CheckpointDir, spec.BeforeStop = t.TempDir(), job.BeforeStopFile
	var sent []syscall.Signal
	a := newAsker(spec.BeforeStop, spec.StopFile("calm-otter"), func(s syscall.Signal) { sent = append(sent, s) })
	if filepath.Dir(a.file) != spec.CheckpointDir {
		t.Errorf("the file is %s", a.file)
	}
	for range 2 { // Withdraw must also work if there is no request
		if err := a.Withdraw(t.Context()); err != nil {
			t.Error(err)
		}
		if err := a.Ask(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(a.file); err != nil {
			t.Error(err)
		}
	}
	found, _, err := (&checkpoints{resume: true}).Newest(t.Context(), spec.CheckpointDir, nil)
	if err != nil || found != nil {
		t.Errorf("the file counts as the checkpoint %v, %v", found, err)
	}
	if err := a.Withdraw(t.Context()); err != nil || len(sent) != 0 {
		t.Errorf("%v, and the signals %v", err, sent)
	}
	if _, err := os.Stat(a.file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	a.file = filepath.Join(spec.CheckpointDir, "gone", "x")
	if err := a.Ask(t.Context()); err == nil {
		t.Error("no error without the directory")
	}
	a.how = job.BeforeStopTERM
	if err := errors.Join(a.Ask(t.Context()), a.Withdraw(t.Context())); err != nil || len(sent) != 1 || sent[0] != syscall.SIGTERM {
		t.Errorf("%v, and the signals %v", err, sent)
	}
}

// TestAskerOfFrozenFiles checks that a file system that does not answer delays a caller for at most askLimit, and that
// only one goroutine waits for it. What that goroutine does late must be done before anything else.
func TestAskerOfFrozenFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker(job.BeforeStopFile, "x", nil)
		frozen, why := make(chan struct{}), errors.New("the gang has ended")
		var done []int
		do := func(n int) func() error { return func() error { <-frozen; done = append(done, n); return nil } }
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := a.within(ctx, do(1)); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		for range 3 {
			if err := a.within(t.Context(), do(2)); !errors.Is(err, errNoAnswer) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(began); took != 3*askLimit {
			t.Errorf("it took %s", took)
		}
		time.AfterFunc(time.Second, func() { close(frozen) })
		if err := a.within(t.Context(), do(3)); err != nil || !slices.Equal(done, []int{1, 3}) {
			t.Errorf("got %v, and %v was done", err, done)
		}
	})
}

func TestCurveOptions(t *testing.T) {
	spec := job.Default()
	o := curveOptions(spec)
	if o.Higher != nil || o.Setup.Target != nil || o.Setup.Settled != nil || o.StepOf("/ck/step-30.pt") != 30 || o.StepOf("/ck/last.pt") != -1 {
		t.Errorf("by default: %+v", o)
	}
	spec.Curve = job.Curve{Metric: "acc", Goal: job.GoalMax, Target: "0.5", Total: 9, DecayEnd: 0}
	if o = curveOptions(spec); o.Metric != "acc" || !*o.Higher || *o.Setup.Target != 0.5 || o.Setup.Total != 9 || *o.Setup.Settled != 0 {
		t.Errorf("got %+v", o)
	}
}
