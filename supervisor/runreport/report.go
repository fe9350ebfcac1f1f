// Package runreport computes the report of a run from its events. It also sums up the report for people.
package runreport

import (
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/saves"
)

// Report is the result of a run, computed from its events: what "gangrun report -o json" prints. Its JSON names
// are an API. Its lists are never null. A time is null until its event has happened.
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
	// Controller is the process that controls the run; null until it is known.
	Controller *job.Controller `json:"controller"`
}

// Job is the job of a run.
type Job struct {
	Run     string   `json:"run"`
	Name    string   `json:"name"`
	Command []string `json:"command"`
	Ranks   int      `json:"ranks"`
	// Fingerprint is the same for runs of the same job with the same program, code, image, inputs, environment and
	// standard input. It is empty if the run had no preflight, or if not all of this is known.
	Fingerprint string `json:"fingerprint"`
}

// End says how a run ended, or what it waits for.
type End struct {
	// ExitCode is null until the run has ended. ExitWhy says what ExitCode means.
	ExitCode *int   `json:"exit_code"`
	ExitWhy  string `json:"exit_why"`
	// MayHelp is true if another run of the job may get further than this run.
	MayHelp bool `json:"may_help"`
	// Reason is why the run ended, or what it waits for. Hint is what the user can do about it.
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
	Why        []string   `json:"why"` // sentences that say why this placement was chosen
	Exits      []job.Exit `json:"exits"`
	// Unreaped has the ranks whose end gangrun has not seen. They may still run.
	Unreaped []job.Unreaped `json:"unreaped"`
	Cause    *job.Cause     `json:"cause"`
	Verdict  *job.Verdict   `json:"verdict"`
	Logs     string         `json:"logs"` // the directory of the ranks' log files
	Progress
	Life
	// Saved is the newest good checkpoint of the run after the attempt had failed. It is null
	// if this attempt did not write that checkpoint.
	Saved *job.Checkpoint `json:"saved"`
	// Saves sums up the checkpoints that the attempt has written, as far as gangrun has watched them.
	Saves saves.Summary `json:"saves"`
}

// Life is what gangrun has seen of the life of the ranks of an attempt.
type Life struct {
	// Activity is what the ranks that had not ended were doing when gangrun began to end the
	// gang.
	Activity []job.Activity `json:"activity"`
	// Signs has the signs that something was wrong with hosts or GPUs during the attempt. Their number is
	// limited.
	Signs []Sign `json:"signs"`
	// Hang says why gangrun decided that the gang hangs, and where its ranks were. It is null if the gang did
	// not hang.
	Hang *job.HangReport `json:"hang"`
	// Stragglers has the ranks and hosts that were slower than their peers. Their number is limited.
	Stragglers []job.StragglerReport `json:"stragglers"`
	// Curves has the verdicts on the curves of the job. Their number is limited.
	Curves []job.CurveVerdict `json:"curves"`
}

// maxCurves is the maximum number of verdicts on curves of an attempt in a report. The journal has all of them.
const maxCurves = 100

// maxStragglers is the maximum number of stragglers of an attempt in a report. The journal has all of them.
const maxStragglers = 100

// Sign is a sign that something is wrong with a host or with its GPUs.
type Sign struct {
	Time time.Time `json:"time"`
	Host string    `json:"host"`
	// Health or GPU says what kind of sign it is; the other is null.
	Health *job.Health `json:"health"`
	GPU    *job.GPU    `json:"gpu"`
	Text   string      `json:"text"`
	Hint   string      `json:"hint"`
}

// Serious reports whether the sign is more than a note.
func (s Sign) Serious() bool {
	switch {
	case s.Health != nil:
		return s.Health.Severity != job.SeverityNote
	case s.GPU != nil:
		return s.GPU.Serious()
	}
	return false
}

// maxSigns is the maximum number of signs of an attempt in a report. The journal has all of them.
const maxSigns = 200

// addSign adds the sign of a health or gpu event.
func (a *Attempt) addSign(e job.Event) {
	if len(a.Signs) < maxSigns {
		a.Signs = append(a.Signs, Sign{Time: e.Time, Host: e.Host, Health: e.Health, GPU: e.GPU, Text: e.Text, Hint: e.Hint})
	}
}

// Progress is the progress of the gang of an attempt.
type Progress struct {
	// FirstStep is when a rank first printed a step.
	FirstStep *time.Time `json:"first_step"`
	// Step is the highest step that a rank printed; -1 if none was printed. Total is the number of steps of the
	// job; 0 if it is not known. Loss is the last loss that a rank printed.
	Step  int64    `json:"step"`
	Total int64    `json:"total"`
	Loss  *float64 `json:"loss"`
	// LossIs is "nan", "inf" or "-inf" if the last loss that a rank printed is not finite; Loss
	// is then null.
	LossIs string `json:"loss_is"`
}

// Seconds is how long a run was in each phase. Running includes the time in which gangrun ends
// a gang.
type Seconds struct {
	Preflight float64 `json:"preflight"`
	Waiting   float64 `json:"waiting"`
	Launching float64 `json:"launching"`
	Running   float64 `json:"running"`
	Backoff   float64 `json:"backoff"`
}

// GPUSeconds is GPU time: the number of GPUs times the seconds for which attempts held them. Used is the GPU
// time of all attempts. Wasted is the GPU time of failed attempts after their last good checkpoint. If a failed
// attempt wrote no good checkpoint, all of its GPU time is wasted.
type GPUSeconds struct {
	Used   float64 `json:"used"`
	Wasted float64 `json:"wasted"`
}

// Fold returns the report of a run from the events of its journal. The journal may lack events.
func Fold(events []job.Event) Report {
	var f Folder
	for _, e := range events {
		f.Add(e)
	}
	return f.Report()
}

// Last returns the last attempt, or nil if there was none.
func (r Report) Last() *Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// Cause returns why the run failed: the cause of the last attempt, or of the preflight's first
// error. It returns nil if nothing failed or no cause is known.
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
