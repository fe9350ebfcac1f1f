package job

import (
	"math"
	"strconv"
	"time"
)

// Kind is the kind of an Event.
type Kind string

// The kinds of events, in their usual order.
const (
	KindCreated     Kind = "created"     // Controller, Spec, Batch
	KindState       Kind = "state"       // State, Text: why
	KindFinding     Kind = "finding"     // Finding
	KindFingerprint Kind = "fingerprint" // Text: the fingerprint of the job and its code
	KindTrial       Kind = "trial"       // Text: how the trial goes; Placement and LogDir if a round of the trial begins; Attempt 0
	KindPlaced      Kind = "placed"      // Attempt, Placement, Explanation
	KindAttempt     Kind = "attempt"     // Attempt, ResumeFrom; Checkpoint: what the attempt resumes from
	KindHost        Kind = "host"        // Host, Agent: an agent was started there
	KindStarted     Kind = "started"     // Rank, Host, PID
	KindStdin       Kind = "stdin"       // Rank, Host: a rank of a trial reads standard input, which has ended
	KindProgress    Kind = "progress"    // Rank, Host, Progress
	KindUnread      Kind = "unread"      // Host: its ranks have printed lines for a while, and none was progress
	KindExit        Kind = "exit"        // Exit
	KindStop        Kind = "stop"        // Stop and Text: why the gang is being ended; Order if Stop is StopOrder or StopHurry
	KindActivity    Kind = "activity"    // Host, Activity: what the host's ranks were doing when gangrun began to end them
	KindOutcome     Kind = "outcome"     // Attempt, Outcome
	// KindCheckpoint has Attempt, and Checkpoint: the newest checkpoint that the attempt left. If
	// Attempt is 0, it is the newest checkpoint from before the run.
	KindCheckpoint Kind = "checkpoint"
	KindCause      Kind = "cause"   // Attempt, Cause
	KindVerdict    Kind = "verdict" // Attempt, Verdict
	// KindNote has Text: what the user should know. State is StateWaiting if Text says what the run waits for.
	// Stop is StopOrder, and Order and Attempt are set, if gangrun carries out an order to end the run.
	KindNote       Kind = "note"
	KindEnded      Kind = "ended"       // State, ExitCode, ExitWhy, MayHelp, Text, Hint
	KindAllStarted Kind = "all-started" // Attempt: every rank has been started
	KindWireup     Kind = "wireup"      // Attempt, Wireup, Text
	KindSuspect    Kind = "suspect"     // Attempt, Host, Text: the host is silent; Since: the last contact
	KindHeard      Kind = "heard"       // Attempt, Host, Text: the host is no longer silent
	KindAttached   Kind = "attached"    // Controller: another process controls the run from now on
	KindSignal     Kind = "signal"      // Attempt, Host, Text, Reached: a signal that gangrun has sent to ranks
	KindGPU        Kind = "gpu"         // Attempt, Host, GPU, Text and Hint: what a driver reports about the gang's GPUs
	KindHealth     Kind = "health"      // Attempt, Host, Health, Text and Hint: a host has a problem, or soon will
	KindHang       Kind = "hang"        // Attempt, Hang, Text: the gang makes no progress any more
	KindStacks     Kind = "stacks"      // Attempt, Stacks: at which places in the program the ranks are
	KindPulse      Kind = "pulse"       // Attempt, Host, Pulses; these events are not journalled
	KindStraggler  Kind = "straggler"   // Attempt, Host, Straggler, Text and Hint: a rank or host is slower than its peers
	KindCurve      Kind = "curve"       // Attempt, Curve, Text: what a curve of the job shows
	KindSave       Kind = "save"        // Attempt, Host, Save, Text and Hint: a checkpoint that the gang writes
	KindInterval   Kind = "interval"    // Attempt, Interval, Text: how often the job should save
)

// Event is one thing that happened to a run: an entry of its journal, except for the kinds whose comments say
// otherwise. The comments of the kinds say which fields are set; all others are zero.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Attempt int       `json:"attempt,omitempty"`
	State   State     `json:"state,omitempty"`
	Text    string    `json:"text,omitempty"`
	Host    string    `json:"host,omitempty"`
	Rank    int       `json:"rank,omitempty"`
	PID     int       `json:"pid,omitempty"`

	// Stop is set in every event of KindStop. For journals of older versions of gangrun, package journal sets
	// it.
	Stop StopReason `json:"stop,omitempty"`
	// Order is nil in records of older versions of gangrun.
	Order       *Order           `json:"order,omitempty"`
	Since       *time.Time       `json:"since,omitempty"`
	Controller  *Controller      `json:"controller,omitempty"`
	Agent       *Agent           `json:"agent,omitempty"`
	Spec        *Spec            `json:"spec,omitempty"`
	Run         string           `json:"run,omitempty"`
	Batch       *BatchJob        `json:"batch,omitempty"`
	Finding     *Finding         `json:"finding,omitempty"`
	Placement   *Placement       `json:"placement,omitempty"`
	Explanation *Explanation     `json:"explanation,omitempty"`
	ResumeFrom  string           `json:"resume_from,omitempty"`
	LogDir      string           `json:"log_dir,omitempty"`
	Progress    *Progress        `json:"progress,omitempty"`
	Exit        *Exit            `json:"exit,omitempty"`
	Activity    []Activity       `json:"activity,omitempty"`
	Outcome     *Outcome         `json:"outcome,omitempty"`
	Wireup      *Wireup          `json:"wireup,omitempty"`
	Cause       *Cause           `json:"cause,omitempty"`
	Verdict     *Verdict         `json:"verdict,omitempty"`
	Checkpoint  *Checkpoint      `json:"checkpoint,omitempty"`
	GPU         *GPU             `json:"gpu,omitempty"`
	Health      *Health          `json:"health,omitempty"`
	Hang        *HangReport      `json:"hang,omitempty"`
	Straggler   *StragglerReport `json:"straggler,omitempty"`
	Curve       *CurveVerdict    `json:"curve,omitempty"`
	Stacks      []RankStack      `json:"stacks,omitempty"`
	Pulses      *Pulses          `json:"pulses,omitempty"`
	Save        *SaveReport      `json:"save,omitempty"`
	Interval    *SaveInterval    `json:"interval,omitempty"`
	ExitCode    *int             `json:"exit_code,omitempty"`
	// ExitWhy is what ExitCode means, as in "the code of rank 2 on h1".
	ExitWhy string `json:"exit_why,omitempty"`
	// MayHelp is true if another run of the job may get further than this run.
	MayHelp bool `json:"may_help,omitempty"`
	// Reached is the number of ranks of the host to which gangrun has sent a signal. It is nil in records of
	// older versions of gangrun.
	Reached *int `json:"reached,omitempty"`
	// Hint says what to do about the problem in Text.
	Hint string `json:"hint,omitempty"`
}

// Controller identifies the process that controls a run. By these fields, other processes can find out whether
// that process still exists.
type Controller struct {
	Host   string `json:"host"`
	BootID string `json:"boot_id"`
	PID    int    `json:"pid"`
	// Start is the start time of the process in clock ticks after boot (field 22 of
	// /proc/PID/stat). It distinguishes the process from a later one with the same PID.
	Start uint64 `json:"start"`
}

// BatchJob is the batch job in which a run was started.
type BatchJob struct {
	System string `json:"system"` // slurm
	ID     string `json:"id"`
	// If the batch job is a task of a job array, Task is its name, as in 12_3. Otherwise Task is empty.
	Task string `json:"task,omitempty"`
	// Restarts is how often the batch system had requeued the job before the run began.
	Restarts int `json:"restarts"`
}

// String returns the name of the job in its batch system, and the number of its restarts.
func (b BatchJob) String() string {
	name := b.ID
	if b.Task != "" {
		name = b.Task
	}
	if b.Restarts > 0 {
		name += " restart " + strconv.Itoa(b.Restarts)
	}
	return name
}

// Agent identifies an agent on another host, so that a later controller can find it again.
type Agent struct {
	// Token is the agent's name on its host. It need not be secret, because only the agent's
	// user can connect to the agent.
	Token string `json:"token"`
	// Program is the path of gangrun on that host.
	Program string `json:"program"`
	// Boot is the boot ID of the host when the agent was started. If the host now has another
	// boot ID, the agent is gone.
	Boot string `json:"boot"`
}

// Progress is the progress of the job according to a line of a rank's output.
type Progress struct {
	Step  int64 `json:"step"`
	Total int64 `json:"total,omitempty"` // total number of steps; 0 when unknown
	// ByEpoch is true if Step and Total count epochs, because the line has no step.
	ByEpoch bool `json:"by_epoch,omitempty"`
	// Epoch is -1 if neither this line nor an earlier line has an epoch.
	Epoch int64 `json:"epoch"`
	// Count is the number of steps that the rank has made, in all epochs. It never decreases during an
	// attempt. If the job counts its steps anew in each epoch, Restarts is true; otherwise Count equals
	// Step. In records of older versions of gangrun, Count is 0.
	Count    int64 `json:"count,omitempty"`
	Restarts bool  `json:"restarts,omitempty"`
	// Loss is nil if the line has none. It is also nil if the loss is infinite or NaN, because
	// JSON has no such numbers. LossIs then has the value.
	Loss   *float64 `json:"loss,omitempty"`
	LossIs string   `json:"loss_is,omitempty"`
	// Metrics are further finite values, by the names that the program has given to GANGRUN_PROGRESS_FD.
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// At returns how far the rank is: Count, or Step in records of older versions of gangrun.
func (p Progress) At() int64 { return max(p.Count, p.Step) }

// The values of LossIs, which may also be empty.
const (
	LossNaN         = "nan"
	LossInfinite    = "inf"
	LossNegInfinite = "-inf"
)

// SetLoss sets Loss if the value is finite, and otherwise LossIs.
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

// LossValue returns the loss, which may not be finite. Call it only if HasLoss returns true.
func (p Progress) LossValue() float64 {
	if p.Loss != nil {
		return *p.Loss
	}
	return map[string]float64{LossNaN: math.NaN(), LossInfinite: math.Inf(1), LossNegInfinite: math.Inf(-1)}[p.LossIs]
}

// HasLoss reports whether the line has a loss, finite or not.
func (p Progress) HasLoss() bool { return p.Loss != nil || p.LossIs != "" }

// Output is a piece of what a rank prints, on its way to the terminal. It may begin and end
// anywhere in a line. It is not an Event, and gangrun does not write it to the journal.
type Output struct {
	Rank   int
	Host   string
	Stderr bool
	Data   []byte
	End    bool // the stream has ended; Data is empty
}
