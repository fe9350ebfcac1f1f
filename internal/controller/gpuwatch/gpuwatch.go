// Package gpuwatch adds to a gang's events what the NVIDIA drivers of its hosts report about the
// gang's GPUs: XID and ECC errors, signs of ill health, a driver that hangs, ranks that
// use each other's GPUs, and processes that do not belong to the gang but use its GPUs.
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

// settleTime is how long the watch continues after the failure of a gang. The driver may report an error only while
// ranks die of it, or later.
const settleTime = 500 * time.Millisecond

// Launch runs gangrun-nvml on another host.
type Launch func(ctx context.Context, host string, args ...string) (probe.Remote, error)

// Watcher is a Runner that watches the GPUs of its gang while the gang runs. During a
// trial it watches only if ranks can see each other's GPUs.
type Watcher struct {
	runner   Runner
	here     func(host string) bool
	launch   Launch
	watching probe.Watching // the settings without the GPUs
	settle   time.Duration
}

// New returns a Watcher of the gangs that runner runs. isLocal reports whether a host is this
// machine. launch may be nil; the GPUs of other hosts are not watched then.
func New(runner Runner, isLocal func(host string) bool, launch Launch) *Watcher {
	return &Watcher{runner: runner, here: isLocal, launch: launch, settle: settleTime}
}

// Run runs an attempt to its end, and watches its GPUs meanwhile.
func (w *Watcher) Run(ctx context.Context, a job.Attempt, emit func(job.Event)) (job.Outcome, error) {
	var mu sync.Mutex
	serial := func(e job.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	reporters := w.reporters(a, serial)
	if len(reporters) == 0 {
		return w.runner.Run(ctx, a, emit)
	}
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var watches sync.WaitGroup
	for _, r := range reporters {
		watching := w.watching
		watching.GPUs = r.gpus.uuids
		if host := r.gpus.host; !w.here(host) {
			watching.Launch = func(ctx context.Context, args ...string) (probe.Remote, error) { return w.launch(ctx, host, args...) }
		}
		watches.Go(func() { probe.Watch(watchCtx, watching, r.event, r.finding) })
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watches.Wait()
	}()
	outcome, err := w.runner.Run(ctx, a, func(e job.Event) {
		for _, r := range reporters {
			r.sharing.started(e)
		}
		if e.Pulses != nil {
			for i := range e.Pulses.Ranks {
				e.Pulses.Ranks[i].GPU = load(reporters, e.Pulses.Ranks[i].Rank)
			}
		}
		serial(e)
	})
	if err == nil && !a.Trial() && !outcome.Good(len(a.Placement.Ranks)) {
		w.waitForReports(ctx, watched)
	}
	stop()
	<-watched
	for _, r := range reporters {
		r.close()
	}
	return outcome, err
}

// reporters returns a reporter for each host whose GPUs are watched. If several hosts are this machine, only the first
// of them gets a reporter.
func (w *Watcher) reporters(a job.Attempt, emit func(job.Event)) (all []*reporter) {
	local := false
	for _, h := range a.Placement.Hosts {
		here := w.here(h.Name)
		if here && local || !here && w.launch == nil {
			continue
		}
		local = local || here
		gpus := gpusOn(a.Placement, h)
		shared := rankenv.SharedView(a, h.Name)
		if len(gpus.uuids) == 0 || a.Trial() && !shared {
			continue
		}
		r := &reporter{gpus: gpus, attempt: a.Number, emit: emit, sharing: newSharing(gpus)}
		r.sharing.seeAll = shared
		if !here {
			r.sharing.parent, r.sharing.name = nowhere, unknown
		}
		all = append(all, r)
	}
	return all
}

// load returns the load of the GPUs of a rank. It is the mean of the latest samples of all these GPUs. load returns nil
// if there is no sample.
func load(reporters []*reporter, rank int) *job.GPUPulse {
	for _, r := range reporters {
		if p := r.pulse(rank); p != nil {
			return p
		}
	}
	return nil
}

// nowhere and unknown are used for hosts other than this machine, in place of functions that read /proc.
func nowhere(int) int    { return 0 }
func unknown(int) string { return "" }

// waitForReports waits for late reports of the driver. It returns early if the watch ends, or if ctx ends because the
// user has ended the run.
func (w *Watcher) waitForReports(ctx context.Context, watched <-chan struct{}) {
	limit := time.NewTimer(w.settle)
	defer limit.Stop()
	select {
	case <-limit.C:
	case <-watched:
	case <-ctx.Done():
	}
}
