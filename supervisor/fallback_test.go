package supervisor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kept returns a checkpoint of a step as a run leaves it.
func kept(step int64) *job.Checkpoint {
	return &job.Checkpoint{Path: fmt.Sprintf("/ckpt/step-%d", step), Step: step, Time: now.Add(time.Duration(step) * time.Second)}
}

// TestFallback runs jobs whose checkpoints cannot be loaded.
func TestFallback(t *testing.T) {
	saves := dies(signalled(1, 9), job.Killed, 45)
	saves.saves, saves.older = kept(40), []*job.Checkpoint{kept(20), kept(10)}
	one := saves
	one.older = nil
	plain := func(*world) {}
	loads := func(what job.Category) gang { return dies(exited(0, 1), what, -1) }
	for name, test := range map[string]struct {
		gangs []gang
		set   func(*world)
		from  []string // the checkpoint of each attempt
		state job.State
		why   string
	}{
		"semantic-error":          {[]gang{saves, loads(job.SemanticError), works()}, plain, []string{"", "/ckpt/step-40", "/ckpt/step-20"}, job.StateSucceeded, "every rank ended well"},
		"all of them":             {[]gang{saves, loads(job.SemanticError), loads(job.SemanticError)}, plain, []string{"", "/ckpt/step-40", "/ckpt/step-20"}, job.StateFailed, "a retry cannot fix semantic-error"},
		"damaged":                 {[]gang{saves, loads(job.CheckpointError), loads(job.CheckpointError), works()}, plain, []string{"", "/ckpt/step-40", "/ckpt/step-20", "/ckpt/step-10"}, job.StateSucceeded, "every rank ended well"},
		"the only one is damaged": {[]gang{one, loads(job.CheckpointError), works()}, plain, []string{"", "/ckpt/step-40", ""}, job.StateSucceeded, "every rank ended well"},
		"all are damaged, told to resume": {[]gang{loads(job.CheckpointError), loads(job.CheckpointError), loads(job.Hang), loads(job.Hang)}, func(w *world) {
			w.spec.Resume, w.checkpoints.newest, w.checkpoints.older = true, kept(40), []*job.Checkpoint{kept(20)}
		}, []string{"/ckpt/step-40", "/ckpt/step-20", "/ckpt/step-40", "/ckpt/step-20"}, job.StateFailed, "the job failed to start from every checkpoint that there is"},
		"hangs, told to resume": {[]gang{loads(job.Hang), loads(job.Hang)}, func(w *world) {
			w.spec.Resume, w.checkpoints.newest = true, kept(40)
		}, []string{"/ckpt/step-40", "/ckpt/step-40"}, job.StateFailed, "the job failed to start from every checkpoint that there is"},
		"storage": {[]gang{saves, loads(job.StorageError), loads(job.StorageError), works()}, func(w *world) { w.spec.Retries = 9 },
			[]string{"", "/ckpt/step-40", "/ckpt/step-40", "/ckpt/step-20"}, job.StateSucceeded, "every rank ended well"},
		"the network, often": {[]gang{saves, loads(job.NetworkError), loads(job.NetworkError), works()}, plain,
			[]string{"", "/ckpt/step-40", "/ckpt/step-40", "/ckpt/step-40"}, job.StateSucceeded, "every rank ended well"},
		"a bad one stays bad": {[]gang{saves, loads(job.CheckpointError), dies(exited(0, 1), job.NetworkError, 30), works()}, plain,
			[]string{"", "/ckpt/step-40", "/ckpt/step-20", "/ckpt/step-20"}, job.StateSucceeded, "every rank ended well"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.gangs...)
			w.spec.CheckpointDir = "/ckpt"
			test.set(w)
			w.run(t)
			var from []string
			for _, a := range w.report.Attempts {
				from = append(from, a.ResumeFrom)
			}
			if w.report.State != test.state || w.report.Reason != test.why || !slices.Equal(from, test.from) {
				t.Errorf("%s, %q from %q; want %s, %q from %q", w.report.State, w.report.Reason, from, test.state, test.why, test.from)
			}
		})
	}
}
