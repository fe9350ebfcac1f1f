package controller

import (
	"context"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/batchlimit"
	"github.com/gangrun/gangrun/internal/controller/batchend"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/inventory"
)

// batchWatch is the watch over the batch job of this process. It is empty before begin.
type batchWatch struct {
	mu    sync.Mutex
	watch *batchend.Watch // nil outside of batch jobs
}

// begin begins the watch. The context that begin returns ends when ctx ends, or when the job must end.
func (b *batchWatch) begin(ctx context.Context, spec job.Spec, note func(string)) context.Context {
	if namesHosts(spec) {
		return ctx
	}
	var w *batchend.Watch
	limit := batchlimit.System{Lookup: os.LookupEnv, Changed: changed, Run: inventory.Output, Now: time.Now}
	if j, ok := batchend.Here(os.LookupEnv); ok {
		ctx, w = batchend.Begin(ctx, j, reserve(spec, shellBetween()), note)
	} else if end, known := limit.End(); known {
		ctx, w = batchend.Until(ctx, end, reserve(spec, true))
	} else {
		return ctx
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = w
	return ctx
}

// changed returns when a file was last changed.
func changed(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

func (b *batchWatch) get() *batchend.Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watch
}

// check makes the watch ask whether the job still runs.
func (b *batchWatch) check() {
	if w := b.get(); w != nil {
		w.Check()
	}
}

// stop ends the watch.
func (b *batchWatch) stop() {
	if w := b.get(); w != nil {
		w.Stop()
	}
}

// ended returns a function that returns why the batch system has ended the job. Outside of batch jobs, ended returns
// nil.
func (b *batchWatch) ended() func() job.Ended {
	if w := b.get(); w != nil {
		return w.Ended
	}
	return nil
}

// shellBetween reports whether this process was started by a shell and is not itself the first process of its batch
// job's script. In that case, Slurm signals only the shell at the end of the job. The shell then ends, and Slurm kills
// this process.
func shellBetween() bool {
	first, err := strconv.Atoi(os.Getenv("SLURM_TASK_PID"))
	return err == nil && first != os.Getpid()
}

// endTime is how long gangrun itself may take to end a run after the grace period.
const endTime = 5 * time.Second

// reserve returns how long before the time limit of its batch job gangrun ends a run.
func reserve(spec job.Spec, shell bool) time.Duration {
	switch saving := spec.BeforeStop.Asks(); {
	case spec.TimeReserve > 0:
		return time.Duration(spec.TimeReserve)
	case saving:
		return time.Duration(spec.BeforeStopWait+spec.Grace) + endTime
	case shell, spec.Requeue > 0:
		return time.Duration(spec.Grace) + endTime
	}
	return 0
}

// batchSignal handles a signal that the batch system has sent to the job's processes on its nodes.
func (s *session) batchSignal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGUSR1, syscall.SIGUSR2:
		s.userSignal(sig)
	case syscall.SIGTERM:
		s.signals.Batch()
	}
}

// userSignal handles SIGUSR1 or SIGUSR2.
func (s *session) userSignal(sig syscall.Signal) {
	switch s.spec.OnSignal {
	case job.OnSignalIgnore:
	case job.OnSignalStop:
		if w := s.batch.get(); w != nil {
			w.End()
			return
		}
		s.signals.Stop(job.SignalName(int(sig)))
	default:
		s.launcher.Signal(sig)
	}
}

// batchJob returns the batch job of this process. Outside of batch jobs, it returns nil.
func batchJob() *job.BatchJob {
	j, ok := batchend.Here(os.LookupEnv)
	if !ok {
		return nil
	}
	b := &job.BatchJob{System: "slurm", ID: j.ID, Restarts: j.Restarts}
	if array, task := os.Getenv("SLURM_ARRAY_JOB_ID"), os.Getenv("SLURM_ARRAY_TASK_ID"); array != "" && task != "" {
		b.Task = array + "_" + task
	}
	return b
}
