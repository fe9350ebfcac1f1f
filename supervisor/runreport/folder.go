package runreport

import (
	"maps"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Folder computes a run's Report from its events, which it receives one at a time. The zero
// Folder is ready for use. Only one goroutine may use it.
type Folder struct {
	report Report
	times  timeline
	waits  int          // position in Notes, from 1, of the note about the current wait; 0 if there is none
	alive  map[int]bool // ranks of the latest attempt that have started and not ended
	// infinite has, for each rank of the latest attempt whose last loss was not finite, what the loss is (see
	// LossIs).
	infinite map[int]string
	trial    trialFolder
}

// Add adds one event. The events of a trial, which have the attempt number 0, change no
// Attempt.
func (f *Folder) Add(e job.Event) {
	f.times.see(e.Time)
	r := &f.report
	switch e.Kind {
	case job.KindCreated:
		r.Run, r.Controller, r.Batch, r.Started = e.Run, e.Controller, e.Batch, when(e.Time)
		if e.Spec != nil {
			r.Name, r.Command, r.Ranks = e.Spec.Name, slices.Clone(e.Spec.Command), e.Spec.Ranks
		}
	case job.KindAttached:
		r.Controller = e.Controller
		if r.State == job.StatePreflight { // the new controller repeats the preflight
			r.Preflight, f.trial = nil, trialFolder{}
		}
	case job.KindState:
		r.State, r.Reason, f.waits = e.State, e.Text, 0
		f.times.enter(phaseOf(e.State), e.Time)
		r.Since = when(e.Time)
		f.trial.end(e.Time)
	case job.KindFingerprint:
		r.Fingerprint = e.Text
	case job.KindFinding:
		if e.Finding != nil {
			r.Preflight = append(r.Preflight, *e.Finding)
		}
	case job.KindNote:
		waits := e.State == job.StateWaiting
		if waits && f.waits > 0 { // the note replaces the earlier note about the same wait
			r.Notes = slices.Delete(r.Notes, f.waits-1, f.waits)
		}
		if waits || !slices.Contains(r.Notes, e.Text) { // attempts may give the same note
			r.Notes = append(r.Notes, e.Text)
		}
		if waits {
			f.waits = len(r.Notes)
		}
	case job.KindEnded:
		r.State, r.Reason, r.Hint, r.ExitCode, r.ExitWhy, r.MayHelp = e.State, e.Text, e.Hint, e.ExitCode, e.ExitWhy, e.MayHelp
		r.Ended, r.Since = when(e.Time), when(e.Time)
		f.times.enter(phaseNone, e.Time)
		f.trial.end(e.Time)
		clear(f.alive)
	case job.KindGPU, job.KindHealth:
		if !f.Told(e) {
			r.Notes = append(r.Notes, "on "+e.Host+": "+e.Text)
		}
		if e.Attempt > 0 {
			f.attempt(e.Attempt).addSign(e)
		}
	default:
		if e.Attempt > 0 {
			f.addAttempt(f.attempt(e.Attempt), e)
		} else {
			f.trial.add(e)
		}
	}
}

func (f *Folder) addAttempt(a *Attempt, e job.Event) {
	switch e.Kind {
	case job.KindPlaced:
		if e.Placement != nil {
			a.Placement = slices.Clone(e.Placement.Ranks)
		}
		if e.Explanation != nil {
			a.Why = slices.Clone(e.Explanation.Why)
		}
	case job.KindAttempt:
		a.Started, a.ResumeFrom, a.Logs = when(e.Time), e.ResumeFrom, e.LogDir
	case job.KindStarted:
		f.alive[e.Rank] = true
	case job.KindProgress:
		if p := e.Progress; p != nil {
			if a.Step < 0 {
				a.FirstStep = when(e.Time)
			}
			a.Step, a.Total = max(a.Step, p.At()), max(a.Total, p.Total)
			if a.Step > a.Total {
				a.Total = 0 // the total is that of one epoch
			}
			f.addLoss(a, e.Rank, *p)
		}
	case job.KindActivity:
		a.Activity = append(a.Activity, e.Activity...)
	case job.KindSave:
		if e.Save != nil {
			a.Saves.Add(*e.Save)
		}
	case job.KindInterval:
		a.Saves.Interval = e.Interval
	case job.KindHang:
		a.Hang = e.Hang
	case job.KindStraggler:
		if e.Straggler != nil && len(a.Stragglers) < maxStragglers {
			a.Stragglers = append(a.Stragglers, *e.Straggler)
		}
	case job.KindCurve:
		if e.Curve != nil && len(a.Curves) < maxCurves {
			a.Curves = append(a.Curves, *e.Curve)
		}
	case job.KindExit:
		if e.Exit != nil {
			a.Exits = append(a.Exits, *e.Exit)
			delete(f.alive, e.Exit.Rank)
		}
	case job.KindOutcome:
		a.Ended = when(e.Time)
		if e.Outcome != nil {
			a.Exits, a.Unreaped = slices.Clone(e.Outcome.Exits), slices.Clone(e.Outcome.Unreaped)
		}
		clear(f.alive)
	case job.KindCheckpoint:
		a.Saved = e.Checkpoint
	case job.KindCause:
		a.Cause = e.Cause
	case job.KindVerdict:
		a.Verdict = e.Verdict
		if e.Verdict != nil && e.Verdict.Action == job.Restart {
			f.times.enter(phaseBackoff, e.Time)
		}
	}
}

// Told reports whether an earlier health event of the same attempt has the same text as e. This happens if
// several hosts report a problem of a file system that they share.
func (f *Folder) Told(e job.Event) bool {
	a := f.report.Last()
	return a != nil && a.Number == e.Attempt && e.Health != nil &&
		slices.ContainsFunc(a.Signs, func(s Sign) bool { return s.Health != nil && s.Text == e.Text })
}

// addLoss records the loss that a rank has printed. A loss that is not finite remains until the same rank
// prints a finite one.
func (f *Folder) addLoss(a *Attempt, rank int, p job.Progress) {
	if !p.HasLoss() {
		return
	}
	if p.LossIs != "" {
		f.infinite[rank] = p.LossIs
	} else {
		delete(f.infinite, rank)
	}
	if len(f.infinite) == 0 {
		a.Loss, a.LossIs = p.Loss, ""
		return
	}
	a.Loss, a.LossIs = nil, f.infinite[slices.Min(slices.Collect(maps.Keys(f.infinite)))]
}

// attempt returns the attempt with a number. It adds one if there is none.
func (f *Folder) attempt(number int) *Attempt {
	as := f.report.Attempts
	if i := slices.IndexFunc(as, func(a Attempt) bool { return a.Number == number }); i >= 0 {
		return &as[i]
	}
	f.report.Attempts = append(as, Attempt{Number: number, Progress: Progress{Step: -1}})
	f.alive, f.infinite = map[int]bool{}, map[int]string{}
	return f.report.Last()
}

// Report returns the report after the events so far. Later calls of Add do not change a returned report.
func (f *Folder) Report() Report {
	r := f.report
	r.Command, r.Notes = list(r.Command), list(r.Notes)
	r.Preflight, r.Attempts = list(r.Preflight), list(r.Attempts)
	r.Trial = f.trial.report()
	r.Seconds = f.times.seconds(r.Started, r.Ended)
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Placement, a.Why, a.Exits, a.Unreaped = list(a.Placement), list(a.Why), list(a.Exits), list(a.Unreaped)
		a.Activity, a.Signs, a.Stragglers = list(a.Activity), list(a.Signs), list(a.Stragglers)
		a.Curves = list(a.Curves)
		a.Saves.Newest = list(a.Saves.Newest)
		for j := range a.Placement {
			a.Placement[j].Devices = list(a.Placement[j].Devices)
		}
		share := a.gpuSeconds(f.times.latest)
		r.GPUSeconds.Used += share.Used
		r.GPUSeconds.Wasted += share.Wasted
	}
	return r
}

// list returns a copy of in. The copy is a list in JSON even if it is empty.
func list[T any](in []T) []T { return append([]T{}, in...) }

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
