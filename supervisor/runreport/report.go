// Package runreport folds the events of a run into its report, and summarizes it for
// people.
package runreport

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// Report is the result of a run, computed from its events: what "gangrun report -o json" prints.
// Its JSON names are an API. Its lists are never null. A time is null until the event has happened.
type Report struct {
	Job
	State job.State `json:"state"`
	// Since is when the run entered its State.
	Since *time.Time `json:"since"`
	End
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`

	Preflight []job.Finding `json:"preflight"`
	// Trial is null until the preflight's trial has reported something.
	Trial      *Trial     `json:"trial"`
	Attempts   []Attempt  `json:"attempts"`
	Notes      []string   `json:"notes"`
	Seconds    Seconds    `json:"seconds"`
	GPUSeconds GPUSeconds `json:"gpu_seconds"`
	// Batch is the batch job in which the run was started; null outside of batch jobs.
	Batch *job.BatchJob `json:"batch"`
	// Controller is the process that controls the run; nil until it is known.
	Controller *job.Controller `json:"controller"`
}

// Job is the job of a run.
type Job struct {
	Run     string   `json:"run"`
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Ranks   int      `json:"ranks"`
}

// End says how a run ended, or what it waits for.
type End struct {
	// ExitCode is null until the run has ended; ExitWhy says what it means.
	ExitCode *int   `json:"exit_code"`
	ExitWhy  string `json:"exit_why"`
	// MayHelp is true if another run of the job may get further than this one.
	MayHelp bool `json:"may_help"`
	// Reason is why the run ended, or what it waits for. Hint is what to do about it.
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
}

// Attempt is one start of the gang, and its result.
type Attempt struct {
	Number  int        `json:"number"`
	Started *time.Time `json:"started"`
	Ended   *time.Time `json:"ended"`
	// ResumeFrom is the checkpoint from which the gang started; empty if there was none.
	ResumeFrom string     `json:"resume_from"`
	Placement  []job.Rank `json:"placement"`
	Why        []string   `json:"why"` // why this placement was chosen
	Exits      []job.Exit `json:"exits"`
	// Unreaped are ranks that may still have been running when the attempt was given up.
	Unreaped []job.Unreaped `json:"unreaped"`
	Cause    *job.Cause     `json:"cause"`
	Verdict  *job.Verdict   `json:"verdict"`
	Logs     string         `json:"logs"` // directory of the ranks' log files
	Progress
	// Activity is what the living ranks were doing when gangrun began to end the gang.
	Activity []job.Activity `json:"activity"`
	// Saved is the newest good checkpoint of the run after the attempt had failed, if this
	// attempt has written it.
	Saved *job.Checkpoint `json:"saved"`
}

// Progress is the progress of the gang of an attempt.
type Progress struct {
	// FirstStep is when a rank first printed a step.
	FirstStep *time.Time `json:"first_step"`
	// Step is the furthest step that a rank printed, -1 for none; Total is the number of
	// all steps, 0 if unknown; Loss is the last one printed.
	Step  int64    `json:"step"`
	Total int64    `json:"total"`
	Loss  *float64 `json:"loss"`
	// LossIs is "nan", "inf" or "-inf" if the last loss that a rank printed is not finite; Loss
	// is then null.
	LossIs string `json:"loss_is"`
}

// Seconds is how long a run was in each phase. The time that ending a gang takes belongs to
// running.
type Seconds struct {
	Preflight float64 `json:"preflight"`
	Waiting   float64 `json:"waiting"`
	Launching float64 `json:"launching"`
	Running   float64 `json:"running"`
	Backoff   float64 `json:"backoff"`
}

// GPUSeconds is the number of GPUs held times seconds: Used by all attempts, and Wasted by failed
// attempts since their last good checkpoint, or since their start if there is none.
type GPUSeconds struct {
	Used   float64 `json:"used"`
	Wasted float64 `json:"wasted"`
}

// Fold returns the report of a journal, which need not be complete.
func Fold(events []job.Event) Report {
	var f Folder
	for _, e := range events {
		f.Add(e)
	}
	return f.Report()
}

// Last returns the last attempt, nil when there was none.
func (r Report) Last() *Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// Cause returns why the run failed: the last attempt's cause, or that of the
// preflight's first error. It is nil when nothing failed or no cause is known.
func (r Report) Cause() *job.Cause {
	if a := r.Last(); a != nil {
		return a.Cause
	}
	if f := job.FirstError(r.Preflight); f != nil {
		return f.Cause
	}
	return nil
}

// Good reports whether the attempt succeeded.
func (a Attempt) Good() bool { return a.Verdict != nil && a.Verdict.Action == job.Succeed }

// devices returns the number of GPUs that the attempt holds.
func (a Attempt) devices() int {
	held := map[string]bool{}
	for _, r := range a.Placement {
		for _, d := range r.Devices {
			held[d] = true
		}
	}
	return len(held)
}

// gpuSeconds returns the GPU time of the attempt, up to now if it has not ended.
func (a Attempt) gpuSeconds(now time.Time) GPUSeconds {
	if a.Started == nil {
		return GPUSeconds{}
	}
	devices, end := float64(a.devices()), now
	if a.Ended != nil {
		end = *a.Ended
	}
	share := GPUSeconds{Used: devices * max(0, end.Sub(*a.Started).Seconds())}
	if a.Ended == nil || a.Good() {
		return share
	}
	share.Wasted = share.Used
	if a.Saved != nil && a.Saved.Time.After(*a.Started) {
		share.Wasted = devices * max(0, end.Sub(a.Saved.Time).Seconds())
	}
	return share
}
