package supervisor

import (
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestLegs: the limit on restarts without progress, and the knowledge about checkpoints, apply to all starts of
// a batch job.
func TestLegs(t *testing.T) {
	saves := dies(signalled(1, 9), job.Killed, 45)
	saves.saves, saves.older = kept(40), []*job.Checkpoint{kept(20)}
	loads := func(what job.Category) gang { return dies(exited(0, 1), what, -1) }
	better := dies(signalled(1, 9), job.NetworkError, 55)
	better.saves = kept(50)
	for name, c := range map[string]struct {
		first, second []gang
		from          string // the checkpoint of the second leg's first attempt
		state         job.State
		why           string
	}{
		"the retries are used up": {[]gang{saves, loads(job.NetworkError), loads(job.NetworkError)}, []gang{loads(job.NetworkError)},
			"/ckpt/step-40", job.StateFailed, "2 restarts without progress are spent"},
		"progress in the second leg": {[]gang{saves, loads(job.NetworkError), loads(job.NetworkError)}, []gang{better, works()},
			"/ckpt/step-40", job.StateSucceeded, "every rank ended well"},
		"a checkpoint that cannot be loaded": {[]gang{saves, loads(job.CheckpointError), loads(job.NetworkError)}, []gang{works()},
			"/ckpt/step-20", job.StateSucceeded, "every rank ended well"},
	} {
		t.Run(name, func(t *testing.T) {
			first := newWorld(t, c.first...)
			first.spec.CheckpointDir, first.spec.Retries, first.spec.Requeue = "/ckpt", 2, 5
			first.run(t)
			if first.report.State != job.StateFailed || len(first.report.Attempts) != len(c.first) {
				t.Fatalf("%s after %d attempts: %s", first.report.State, len(first.report.Attempts), first.report.Reason)
			}
			second := newWorld(t, c.second...)
			second.spec, second.spec.Resume = first.spec, true
			second.checkpoints.newest, second.checkpoints.older = first.checkpoints.newest, first.checkpoints.older
			second.legs = [][]job.Event{first.events}
			second.run(t)
			if r := second.report; r.State != c.state || r.Reason != c.why || r.Attempts[0].ResumeFrom != c.from {
				t.Errorf("%s, %q from %q; want %s, %q from %q", r.State, r.Reason, r.Attempts[0].ResumeFrom, c.state, c.why, c.from)
			}
		})
	}
}
