package job

import "time"

// SaveState is what gangrun has found out about a checkpoint of a running gang.
type SaveState string

// The states of saves.
const (
	SaveWriting   SaveState = "writing"   // the gang has been writing it for several seconds already
	SaveComplete  SaveState = "complete"  // it is a good checkpoint
	SaveBroken    SaveState = "broken"    // the gang no longer writes it, and it is no good checkpoint
	SaveShrinking SaveState = "shrinking" // it is complete, but much smaller than those before it
	SaveOverdue   SaveState = "overdue"   // there is no new checkpoint for much longer than usual
	SaveDisk      SaveState = "disk"      // the file system has no room for the next two checkpoints, or for one if the job removes old ones
)

// SaveReport is about a checkpoint that a gang has written or should have written. All files with the same step
// in their names count as one checkpoint. Files is their number, and Path is the first of them.
type SaveReport struct {
	State SaveState `json:"state"`
	Checkpoint
	Files int       `json:"files,omitempty"`
	Begun time.Time `json:"begun"` // when the first byte was written, by the clock of the host
	Write Duration  `json:"write"` // the time from Begun until the last byte was written
	// Stall is how much longer than usual the steps during the write took; nil if that is not known.
	Stall *Duration `json:"stall,omitempty"`
	Usual Duration  `json:"usual,omitempty"` // the usual time between two checkpoints; set with SaveOverdue
	Free  int64     `json:"free,omitempty"`  // free bytes on the disk; set with SaveDisk
	Why   string    `json:"why,omitempty"`   // why the checkpoint is broken, or another remark
}

// Good reports whether a job can resume from the checkpoint.
func (r SaveReport) Good() bool { return r.State == SaveComplete || r.State == SaveShrinking }

// Problem reports whether the report is about a problem of which the user should know at once.
func (r SaveReport) Problem() bool { return r.State != SaveComplete && r.State != SaveWriting }

// FailureSource is where a mean time between failures comes from.
type FailureSource string

// The sources of a mean time between failures.
const (
	FailuresGiven   FailureSource = "given"   // the user has given it
	FailuresOfJob   FailureSource = "job"     // computed from earlier runs of the same job
	FailuresOfHosts FailureSource = "hosts"   // computed from earlier runs on the same hosts
	FailuresUsual   FailureSource = "default" // the mean of a large cluster
)

// SaveInterval says how often a job saves, and how often it should.
type SaveInterval struct {
	Every    Duration      `json:"every"`             // time between two checkpoints; 0 if not known
	Cost     Duration      `json:"cost"`              // how long the training stands still for each checkpoint
	Assumed  bool          `json:"assumed,omitempty"` // Cost is the time of writing; the stall is not known
	Failures Duration      `json:"failures"`          // mean time between two failures
	Source   FailureSource `json:"source"`
	Count    int           `json:"count,omitempty"` // number of failures from which Failures was computed
	// Best is the time between two checkpoints with which the job loses the least time.
	Best Duration `json:"best"`
}
