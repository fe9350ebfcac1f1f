package batchend

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/slurmjob"
	"github.com/gangrun/gangrun/supervisor/order"
)

// TestHere checks which batch job this process is in, and how often the job was requeued.
func TestHere(t *testing.T) {
	for env, want := range map[string]Job{
		"":                                    {},
		"SLURM_JOB_ID=7":                      {ID: "7"},
		"SLURM_JOBID=8 SLURM_RESTART_COUNT=2": {ID: "8", Restarts: 2},
	} {
		got, ok := Here(func(name string) (string, bool) {
			for _, entry := range strings.Fields(env) {
				if k, v, _ := strings.Cut(entry, "="); k == name {
					return v, true
				}
			}
			return "", false
		})
		if got != want || ok != (want.ID != "") {
			t.Errorf("%q: %+v, %t", env, got, ok)
		}
	}
}

// watch begins a watch of a simulated Slurm. show returns the job.
func watch(ctx context.Context, reserve time.Duration, show func() (slurmjob.Job, error)) (context.Context, *Watch) {
	return begin(ctx, &Watch{job: Job{ID: "7"}, reserve: reserve, note: func(string) {}, show: func(ctx context.Context, _ string) (slurmjob.Job, error) {
		j, err := show()
		if err != nil { // Slurm does not answer
			timer := time.NewTimer(slurmjob.Limit)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return j, err
	}})
}

// TestLimit checks that the run ends before the time limit of its job, even if the limit was extended, or if Slurm did
// not answer at first.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked := 0
		ctx, w := watch(context.Background(), 2*time.Minute, func() (slurmjob.Job, error) {
			asked++
			switch asked {
			case 1:
				return slurmjob.Job{}, errors.New("no answer")
			case 2:
				return slurmjob.Job{State: "RUNNING", End: began.Add(time.Hour)}, nil
			}
			return slurmjob.Job{State: "RUNNING", End: began.Add(2 * time.Hour)}, nil
		})
		<-ctx.Done()
		var end order.BatchEnd
		if !errors.As(context.Cause(ctx), &end) || end.Ended != job.EndedBatchLimit {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		if took := time.Since(began); took != 118*time.Minute {
			t.Errorf("ended after %s", took)
		}
		w.Stop()
	})
}

// TestLimitOfSilentSlurm checks that the run ends before the limit that Slurm said last, even if Slurm no longer answers.
func TestLimitOfSilentSlurm(t *testing.T) {
	for _, check := range []time.Duration{0, 50 * time.Minute, 50*time.Minute + 35*time.Second, 58*time.Minute - 2*time.Second} { // when somebody else asks
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			asked := 0
			ctx, w := watch(context.Background(), 2*time.Minute, func() (slurmjob.Job, error) {
				if asked++; asked == 1 {
					return slurmjob.Job{State: "RUNNING", End: began.Add(time.Hour)}, nil
				}
				return slurmjob.Job{}, errors.New("no answer")
			})
			if check > 0 {
				time.Sleep(check)
				w.Check()
			}
			<-ctx.Done()
			if took, ended := time.Since(began), w.Ended(); took != 58*time.Minute || ended != job.EndedBatchLimit {
				t.Errorf("ended after %s: %s", took, ended)
			}
			w.Stop()
		})
	}
}

// TestEnded checks the reason for a signal, and the end of a job that sends no signal.
func TestEnded(t *testing.T) {
	for name, c := range map[string]struct {
		say  slurmjob.Job
		err  error
		want job.Ended
	}{
		"limit":     {say: slurmjob.Job{State: "COMPLETING", Reason: "TimeLimit"}, want: job.EndedBatchLimit},
		"preempted": {say: slurmjob.Job{State: "RUNNING", Preempted: true}, want: job.EndedPreempted},
		"requeued":  {say: slurmjob.Job{State: "PENDING", Restarts: 1}, want: job.EndedPreempted},
		"node":      {say: slurmjob.Job{State: "NODE_FAIL"}, want: job.EndedNodeFailed},
		"cancelled": {say: slurmjob.Job{State: "CANCELLED"}, want: job.EndedCancelled},
		"no answer": {err: errors.New("no answer"), want: job.EndedNot},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signalled, signal := context.WithCancelCause(context.Background())
				var ending atomic.Bool
				ctx, w := watch(signalled, 0, func() (slurmjob.Job, error) {
					if ending.Load() {
						return c.say, c.err
					}
					return slurmjob.Job{State: "RUNNING"}, nil
				})
				synctest.Wait()
				ending.Store(true)
				signal(order.Interrupted{Signal: syscall.SIGTERM})
				<-ctx.Done()
				if got := w.Ended(); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
				w.Stop()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var ending atomic.Bool
		ctx, w := watch(context.Background(), 0, func() (slurmjob.Job, error) {
			if ending.Load() {
				return slurmjob.Job{State: "CANCELLED"}, nil
			}
			return slurmjob.Job{State: "RUNNING"}, nil
		})
		synctest.Wait()
		w.Check()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("a running job has ended")
		}
		ending.Store(true)
		w.Check()
		<-ctx.Done()
		var end order.BatchEnd
		if !errors.As(context.Cause(ctx), &end) || end.Ended != job.EndedCancelled {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		w.Stop()
	})
}

// TestUntil checks that the run ends before the end of a job whose state cannot be queried.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, w := Until(context.Background(), began.Add(time.Hour), time.Minute)
		<-ctx.Done()
		if took := time.Since(began); took != 59*time.Minute {
			t.Errorf("ended after %s", took)
		}
		w.Stop()
	})
}

// TestEndedMeanwhile checks the case that a signal comes while the watch asks whether the job still runs. The answer
// must give the reason for the end.
func TestEndedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signalled, signal := context.WithCancelCause(context.Background())
		asked := 0
		ctx, w := watch(signalled, 0, func() (slurmjob.Job, error) {
			if asked++; asked == 1 {
				return slurmjob.Job{State: "RUNNING"}, nil
			}
			signal(order.Interrupted{Signal: syscall.SIGTERM})
			return slurmjob.Job{State: "COMPLETING", Restarts: 1}, nil
		})
		synctest.Wait()
		w.Check()
		<-ctx.Done()
		if got := w.Ended(); got != job.EndedPreempted {
			t.Errorf("%q, want %q", got, job.EndedPreempted)
		}
		w.Stop()
	})
}
