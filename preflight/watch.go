package preflight

import (
	"context"
	"errors"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// StartLimit is how long a trial's ranks may take to start. It is several times as long as an
// agent needs over a slow connection.
const StartLimit = 2 * time.Minute

// watch finds out from the events of one round of the trial whether the round has passed.
type watch struct {
	ranks, steps int
	limit        time.Duration

	started bool
	failed  bool
	good    int
	seen    map[[2]int64]bool // epoch, step
	// waits is true if a rank waits for standard input.
	waits bool
	// passed says why the attempt has passed. It is "" if it has not passed yet.
	passed string
}

// see adds an event. Each step counts once, even if several ranks report it.
func (w *watch) see(e job.Event) {
	switch {
	case w.passed != "" || w.failed || w.waits:
	case e.Kind == job.KindAllStarted:
		w.started = true
	case e.Kind == job.KindProgress && e.Progress != nil:
		w.seen[[2]int64{e.Progress.Epoch, e.Progress.Step}] = true
		if len(w.seen) >= w.steps {
			w.passed = text.Count(len(w.seen), "progress line")
		}
	case e.Kind == job.KindStdin:
		w.waits = true
	case e.Kind == job.KindExit && e.Exit != nil && e.Exit.Good():
		if w.good++; w.good == w.ranks {
			w.passed = "exit 0"
		}
	case e.Kind == job.KindExit && e.Exit != nil && !e.Exit.Stopped:
		w.failed = true
	}
}

// expire is called when the time limit after the start of the ranks has passed.
func (w *watch) expire() {
	if w.started && w.passed == "" && !w.failed && !w.waits {
		w.passed = "still running"
	}
}

// result says how one attempt of a trial went.
type result struct {
	passed  string // why it passed; "" if it did not
	late    bool   // its ranks did not start within StartLimit
	waits   bool   // a rank waited for standard input, and so gangrun ended the attempt
	outcome job.Outcome
	elapsed time.Duration
}

// try runs one attempt until it has passed or failed, and waits until all of its ranks are gone. If
// ctx was cancelled, the error is that of ctx. Otherwise it is that of the Runner.
func try(ctx context.Context, r Runner, a job.Attempt, steps int, limit time.Duration, forward func(job.Event)) (result, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	events := make(chan job.Event)
	type ended struct {
		outcome job.Outcome
		err     error
	}
	done := make(chan ended, 1)
	begun := time.Now()
	go func() {
		outcome, err := r.Run(running, a, func(e job.Event) { events <- e })
		done <- ended{outcome, err}
	}()
	timer := time.NewTimer(StartLimit)
	defer timer.Stop()
	w := &watch{ranks: len(a.Placement.Ranks), steps: steps, limit: limit, seen: make(map[[2]int64]bool)}
	res := result{}
	take := func(e job.Event) {
		before := w.started
		w.see(e)
		if w.started && !before {
			timer.Reset(w.limit)
		}
		forward(e)
	}
	for {
		select {
		case e := <-events:
			take(e)
		case <-timer.C:
			select { // a report that came in time counts even if this process reads it late
			case e := <-events:
				timer.Reset(0)
				take(e)
			case d := <-done:
				done <- d
			default:
				w.expire()
				res.late = !w.started && !w.failed && w.passed == ""
				end()
			}
		case d := <-done:
			res.outcome = d.outcome
			if res.elapsed == 0 {
				res.elapsed = time.Since(begun)
			}
			switch {
			case ctx.Err() != nil:
				return res, ctx.Err()
			case d.err != nil && !(running.Err() != nil && errors.Is(d.err, context.Canceled)):
				return res, d.err
			case w.passed == "" && !res.late && !w.waits && d.outcome.Good(w.ranks):
				w.passed = "exit 0"
			}
			res.passed = w.passed
			return res, nil
		}
		if (w.passed != "" || w.waits) && res.elapsed == 0 {
			res.elapsed = time.Since(begun)
			res.waits = w.waits
			if w.passed != "exit 0" {
				end()
			}
		}
	}
}
