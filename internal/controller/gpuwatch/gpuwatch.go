// Package gpuwatch adds to a gang's events what the NVIDIA driver reports about the gang's
// GPUs on this machine: XID and ECC errors, signs of ill health, a driver that hangs, ranks that
// use each other's GPUs, and processes of others on them.
package gpuwatch

import (
	"context"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher/rankenv"
	"github.com/gangrun/gangrun/topology/probe"
)

// Runner runs one attempt of a gang to its end.
type Runner interface {
	Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error)
}

// settleTime is how long the watch continues after a gang that has failed. The driver may
// report an error while ranks die of it, or later.
const settleTime = 500 * time.Millisecond

// Watcher is a Runner that watches the GPUs of this machine while its gang runs. During a
// trial it watches only if ranks can see each other's GPUs.
type Watcher struct {
	runner   Runner
	here     func(host string) bool
	watching probe.Watching // without its GPUs
	settle   time.Duration
}

// New returns a Watcher of the gangs that runner runs. isLocal reports whether a host is this
// machine.
func New(runner Runner, isLocal func(host string) bool) *Watcher {
	return &Watcher{runner: runner, here: isLocal, settle: settleTime}
}

// Run runs an attempt to its end, and watches its GPUs meanwhile.
func (w *Watcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	gpus := gpusHere(a.Placement, w.here)
	shared := rankenv.SharedView(a, gpus.host)
	if len(gpus.uuids) == 0 || a.Trial() && !shared {
		return w.runner.Run(ctx, a, emit)
	}
	var mu sync.Mutex
	serial := func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	r := &reporter{gpus: gpus, attempt: a.Number, emit: serial, sharing: newSharing(gpus)}
	r.sharing.seeAll = shared
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watching := w.watching
	watching.GPUs = gpus.uuids
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		probe.Watch(watchCtx, watching, r.event, r.finding)
	}()
	outcome, err := w.runner.Run(ctx, a, func(e job.Event) {
		r.sharing.started(e)
		serial(e)
	})
	if err == nil && !a.Trial() && !outcome.Good(len(a.Placement.Ranks)) {
		w.waitForReports(ctx, watched)
	}
	stop()
	<-watched
	r.close()
	return outcome, err
}

// waitForReports waits for what the driver reports late. It ends early with the watch,
// or with ctx: then the user has ended the run.
func (w *Watcher) waitForReports(ctx context.Context, watched <-chan struct{}) {
	limit := time.NewTimer(w.settle)
	defer limit.Stop()
	select {
	case <-limit.C:
	case <-watched:
	case <-ctx.Done():
	}
}
