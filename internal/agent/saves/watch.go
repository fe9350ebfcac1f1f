// Package saves watches, on one host, the checkpoints that a gang writes. It reads the checkpoint directory
// when the kernel reports a change there, and at intervals. It verifies each checkpoint that the gang has
// finished writing, and reports what package internal/saves finds. Every access has a limit, because a file
// system may freeze.
package saves

import (
	"context"
	"time"

	"github.com/gangrun/gangrun/internal/agent/hostclock"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

const (
	leastPace  = 200 * time.Millisecond // shortest time between two looks
	busyPace   = time.Second            // the same while a checkpoint is being written
	costShare  = 100                    // looks take at most 1/costShare of the time
	busyPoll   = 2 * time.Second        // between two looks while a checkpoint is being written
	idlePoll   = 30 * time.Second       // time between two looks otherwise
	remotePoll = 10 * time.Second       // the same if the kernel does not report all changes
	lastLimit  = 3 * time.Second        // limits the last looks, after the end of the gang
	stallLimit = 30 * time.Second       // how long the report of a good checkpoint waits for the next step
)

// Options says which directory Watch watches, and where it sends its events.
type Options struct {
	Host string
	Dir  string
	// If LocalOnly is true, Watch watches the directory only if it is on a local file system of this host.
	// A directory on a shared file system is watched by another host.
	LocalOnly bool
	// Steps returns the latest steps of each rank on this host.
	Steps func() [][]saves.Step
	Emit  func(job.Event)

	looked func(found int) // for tests: called after each look
}

// watch follows one directory.
type watch struct {
	Options
	follower *saves.Follower
	changes  *changes
	looks    call[look]
	checks   call[check]
	remote   bool

	soonest  time.Time // earliest time of the next look
	planned  time.Time // time of the next look if nothing changes
	noticed  time.Time // time of the first change since the last look; zero if there was none
	rest     time.Time // earliest time of the next verification
	waiting  []waiting
	verified map[string]time.Duration // stalls for the checkpoints that are being verified, by key
}

// waiting is a report that waits for the next step of the training.
type waiting struct {
	job.SaveReport
	since time.Time
}

// Watch watches the checkpoints in a directory until ctx ends. It emits an event for each checkpoint that was
// written, and for each problem.
func Watch(ctx context.Context, o Options) {
	w := &watch{Options: o, verified: map[string]time.Duration{}}
	w.changes = newChanges()
	defer w.changes.close()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // the last verification may still be going on
	defer end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changes := w.changes.noticed
		if !w.noticed.IsZero() {
			changes = nil // there will be a look anyway
		}
		select {
		case <-ctx.Done():
			w.last(life)
			return
		case w.noticed = <-changes:
		case l := <-w.looks.done():
			w.looks.end()
			if l.network && o.LocalOnly {
				return
			}
			w.take(l)
		case c := <-w.checks.done():
			w.checks.end()
			w.takeCheck(c)
		case <-timer.C:
		}
		w.begin(life, time.Now())
		w.release(time.Now(), false)
		timer.Reset(w.pause(time.Now()))
	}
}

// begin begins a look or a verification if it is time for one. At most one look and one verification run at the same
// time.
func (w *watch) begin(ctx context.Context, now time.Time) {
	if !w.looks.pending() && !now.Before(w.soonest) && (!w.noticed.IsZero() || !now.Before(w.planned)) {
		noticed := w.noticed
		w.noticed = time.Time{}
		w.looks.begin(func() look {
			w.changes.watch(w.Dir) // before the look, so that no change is missed
			return lookAt(w.Dir, noticed)
		})
	}
	if w.follower == nil || w.checks.pending() || now.Before(w.rest) {
		return
	}
	if key, parts := w.follower.Due(now, saves.Quiet); key != "" {
		w.check(ctx, key, parts)
	}
}

// check begins the verification of a checkpoint.
func (w *watch) check(ctx context.Context, key string, parts []saves.Found) {
	if _, known := w.verified[key]; !known {
		if stall, ok := w.stall(w.follower.Span(key)); ok {
			w.verified[key] = stall // a verification may take longer than steps are remembered
		}
	}
	w.checks.begin(func() (c check) {
		inBackground(func() { c = verify(ctx, w.Dir, key, parts) })
		return c
	})
}

// take handles the result of a look at the directory.
func (w *watch) take(l look) {
	now := time.Now()
	w.remote = l.network || !w.changes.work()
	if l.err == nil {
		if w.follower == nil {
			w.follower = saves.New(now, l.found)
		} else {
			noticed := l.noticed
			if noticed.IsZero() {
				noticed = l.at
			}
			w.tell(now, w.follower.Look(saves.Look{Now: l.at, Noticed: noticed, Found: l.found, Free: l.free}), nil)
		}
	}
	w.plan(now, l.took)
	if w.Options.looked != nil {
		w.Options.looked(len(l.found))
	}
}

// plan plans the next look. took is how long the last look has taken.
func (w *watch) plan(now time.Time, took time.Duration) {
	every, pace := idlePoll, leastPace
	if w.remote {
		every = remotePoll
	}
	if w.follower != nil && w.follower.Busy(now) {
		every, pace = busyPoll, busyPace
	}
	w.soonest = now.Add(max(pace, costShare*took))
	w.planned = now.Add(every)
	if w.planned.Before(w.soonest) {
		w.planned = w.soonest
	}
}

// pause returns the time until there is something to do, unless something happens earlier.
func (w *watch) pause(now time.Time) time.Duration {
	next := w.planned
	if !w.noticed.IsZero() {
		next = w.soonest
	}
	if w.follower != nil && w.follower.Busy(now) && !w.checks.pending() || len(w.waiting) > 0 {
		if soon := now.Add(busyPoll / 4); soon.Before(next) {
			next = soon
		}
	}
	if w.looks.pending() {
		next = now.Add(busyPoll)
	}
	return max(next.Sub(now), 10*time.Millisecond)
}

// takeCheck handles the result of a verification.
func (w *watch) takeCheck(c check) {
	now := time.Now()
	w.rest = now.Add(restShare * c.took)
	stall, known := w.verified[c.key]
	delete(w.verified, c.key)
	if w.follower == nil || c.results == nil {
		return
	}
	var of *time.Duration
	if known {
		of = &stall
	}
	w.tell(now, w.follower.Verified(now, c.key, c.parts, c.results), of)
}

// tell emits reports. It emits reports of problems at once. It emits a report of a good checkpoint when it is known for
// how long the training stood still for the checkpoint. stall is that time if it is known already.
func (w *watch) tell(now time.Time, reports []job.SaveReport, stall *time.Duration) {
	for _, r := range reports {
		if !r.Good() {
			w.emit(r)
			continue
		}
		if stall != nil {
			d := job.Duration(*stall)
			r.Stall = &d
			w.emit(r)
			continue
		}
		w.waiting = append(w.waiting, waiting{r, now})
	}
}

// release emits the reports that need not wait any longer. If the gang has ended, these are all reports.
func (w *watch) release(now time.Time, ended bool) {
	var left []waiting
	for _, r := range w.waiting {
		stall, ok := w.stall(r.Begun, r.Begun.Add(time.Duration(r.Write)))
		switch {
		case ok:
			d := job.Duration(stall)
			r.Stall = &d
		case !ended && now.Sub(r.since) < stallLimit && w.Steps != nil:
			left = append(left, r)
			continue
		}
		w.emit(r.SaveReport)
	}
	w.waiting = left
}

// stall returns how long the training stood still for a checkpoint.
func (w *watch) stall(begun, ended time.Time) (time.Duration, bool) {
	var all []time.Duration
	if w.Steps != nil {
		for _, steps := range w.Steps() {
			if d, ok := saves.Stall(steps, begun, ended); ok {
				all = append(all, d)
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return saves.Middle(all), true
}

func (w *watch) emit(r job.SaveReport) {
	w.Emit(job.Event{Time: hostclock.Now(), Kind: job.KindSave, Host: w.Host, Save: &r, Text: saves.Text(r), Hint: saves.Hint(r)})
}

// last looks once more after the end of the gang, and verifies the last checkpoints that the gang has written. It takes
// at most lastLimit.
func (w *watch) last(ctx context.Context) {
	limit := time.NewTimer(lastLimit)
	defer limit.Stop()
	defer func() { w.release(time.Now(), true) }()
	again := true // a look that began before the end of the gang may have missed something
	for {
		if w.checks.pending() {
			select {
			case c := <-w.checks.done():
				w.checks.end()
				w.takeCheck(c)
			case <-limit.C:
				return
			}
		}
		if !w.looks.pending() {
			if !again {
				break
			}
			again = false
			w.looks.begin(func() look { return lookAt(w.Dir, w.noticed) })
		}
		select {
		case l := <-w.looks.done():
			w.looks.end()
			if l.network && w.LocalOnly {
				return
			}
			w.take(l)
		case <-limit.C:
			return
		}
	}
	if w.follower == nil {
		return
	}
	for {
		key, parts := w.follower.CloseDue(time.Now())
		if key == "" {
			break
		}
		w.check(ctx, key, parts)
		select {
		case c := <-w.checks.done():
			w.checks.end()
			if c.results == nil { // the checkpoint is gone, or cannot be verified in time
				return
			}
			w.takeCheck(c)
		case <-limit.C:
			return
		}
	}
	w.tell(time.Now(), w.follower.Close(time.Now()), nil)
}
