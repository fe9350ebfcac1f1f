package job

import (
	"math"
	"time"
)

// Kind is the kind of an Event.
type Kind string

// The kinds of events, in their usual order.
const (
	KindCreated    Kind = "created"     // Controller, Spec
	KindState      Kind = "state"       // State, Text: why
	KindFinding    Kind = "finding"     // Finding
	KindTrial      Kind = "trial"       // Text: how the trial goes; Placement and LogDir: of a step that begins; Attempt 0
	KindPlaced     Kind = "placed"      // Attempt, Placement, Explanation
	KindAttempt    Kind = "attempt"     // Attempt, ResumeFrom, Checkpoint: that which it resumes from
	KindHost       Kind = "host"        // Host, Agent: one was started there
	KindStarted    Kind = "started"     // Rank, Host, PID
	KindStdin      Kind = "stdin"       // Rank, Host: it waits for standard input, of which there is no more; of a trial
	KindProgress   Kind = "progress"    // Rank, Host, Progress
	KindExit       Kind = "exit"        // Exit
	KindStop       Kind = "stop"        // Stop and Text: why the gang is being ended
	KindActivity   Kind = "activity"    // Host, Activity: what its ranks were doing when they were to end
	KindOutcome    Kind = "outcome"     // Attempt, Outcome
	KindCheckpoint Kind = "checkpoint"  // Attempt, Checkpoint: what the attempt left to resume from; of attempt 0, what lay there before the first
	KindCause      Kind = "cause"       // Attempt, Cause
	KindVerdict    Kind = "verdict"     // Attempt, Verdict
	KindNote       Kind = "note"        // Text: what the user should know; State is waiting where that is what a place is waited for
	KindEnded      Kind = "ended"       // State, ExitCode, ExitWhy, Text, Hint
	KindAllStarted Kind = "all-started" // Attempt: every rank has been started
	KindWireup     Kind = "wireup"      // Attempt, Wireup, Text
	KindSuspect    Kind = "suspect"     // Attempt, Host, Text: it is silent; Since: the last contact
	KindHeard      Kind = "heard"       // Attempt, Host, Text: it is silent no more
	KindAttached   Kind = "attached"    // Controller: another process stays with the run from now on
	KindGPU        Kind = "gpu"         // Attempt, Host, GPU, Text and Hint: what a driver tells of the gang's GPUs
)

// Event is one thing that happened to a run: a line of its journal. Fields
// that its Kind does not name are zero.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Attempt int       `json:"attempt,omitempty"`
	State   State     `json:"state,omitempty"`
	Text    string    `json:"text,omitempty"`
	Host    string    `json:"host,omitempty"`
	Rank    int       `json:"rank,omitempty"`
	PID     int       `json:"pid,omitempty"`

	// Stop is empty in journals of versions that had no such field; it then counts as
	// StopFailure.
	Stop        StopReason   `json:"stop,omitempty"`
	Since       *time.Time   `json:"since,omitempty"`
	Controller  *Controller  `json:"controller,omitempty"`
	Agent       *Agent       `json:"agent,omitempty"`
	Spec        *Spec        `json:"spec,omitempty"`
	Run         string       `json:"run,omitempty"`
	Finding     *Finding     `json:"finding,omitempty"`
	Placement   *Placement   `json:"placement,omitempty"`
	Explanation *Explanation `json:"explanation,omitempty"`
	ResumeFrom  string       `json:"resume_from,omitempty"`
	LogDir      string       `json:"log_dir,omitempty"`
	Progress    *Progress    `json:"progress,omitempty"`
	Exit        *Exit        `json:"exit,omitempty"`
	Activity    []Activity   `json:"activity,omitempty"`
	Outcome     *Outcome     `json:"outcome,omitempty"`
	Wireup      *Wireup      `json:"wireup,omitempty"`
	Cause       *Cause       `json:"cause,omitempty"`
	Verdict     *Verdict     `json:"verdict,omitempty"`
	Checkpoint  *Checkpoint  `json:"checkpoint,omitempty"`
	GPU         *GPU         `json:"gpu,omitempty"`
	ExitCode    *int         `json:"exit_code,omitempty"`
	// ExitWhy says what ExitCode tells, as in "the code of rank 2 on h1".
	ExitWhy string `json:"exit_why,omitempty"`
	// Hint says what to do about Text.
	Hint string `json:"hint,omitempty"`
}

// Controller identifies the process that controls a run, so that it can be seen later
// whether it still exists.
type Controller struct {
	Host   string `json:"host"`
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	// Start is the process's start time in clock ticks after boot, field 22 of
	// /proc/PID/stat, by which a later process with the same PID is not taken for it.
	Start uint64 `json:"start"`
}

// Agent identifies an agent on another host, so that it can be found again.
type Agent struct {
	// Token names it on its host; it is no secret, since only its user can reach it.
	Token string `json:"token"`
	// Program is the path of gangrun there.
	Program string `json:"program"`
	// Boot is the host's boot id: an agent of an earlier one is gone.
	Boot string `json:"boot"`
}

// Progress is the progress of the job by a line of a rank's output.
type Progress struct {
	Step  int64 `json:"step"`
	Total int64 `json:"total,omitempty"` // steps in all; 0 when unknown
	// ByEpoch says that Step and Total count epochs, since the line names no step.
	ByEpoch bool `json:"by_epoch,omitempty"`
	// Epoch is -1 when the line names none.
	Epoch int64 `json:"epoch"`
	// Loss is nil when the line names none, or one that is not finite: then
	// LossIs says which, since JSON has no number for it.
	Loss   *float64 `json:"loss,omitempty"`
	LossIs string   `json:"loss_is,omitempty"`
}

// What LossIs can be, beside empty.
const (
	LossNaN         = "nan"
	LossInfinite    = "inf"
	LossNegInfinite = "-inf"
)

// SetLoss sets Loss, or LossIs for a value that is not finite.
func (p *Progress) SetLoss(value float64) {
	p.Loss, p.LossIs = nil, ""
	switch {
	case math.IsNaN(value):
		p.LossIs = LossNaN
	case math.IsInf(value, 1):
		p.LossIs = LossInfinite
	case math.IsInf(value, -1):
		p.LossIs = LossNegInfinite
	default:
		p.Loss = &value
	}
}

// HasLoss reports whether the line names a loss, finite or not.
func (p Progress) HasLoss() bool { return p.Loss != nil || p.LossIs != "" }

// Output is a piece of a rank's stream, cut anywhere, on its way to the
// terminal. It is no Event: it is never journalled.
type Output struct {
	Rank   int
	Host   string
	Stderr bool
	Data   []byte
	End    bool // the stream has ended; Data is empty
}
