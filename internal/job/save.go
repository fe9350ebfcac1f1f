package job

import "time"

// SaveState is what was found out about a checkpoint of a running gang.
type SaveState string

// The states of saves.
const (
	SaveWriting   SaveState = "writing"   // it has been written for several seconds already
	SaveComplete  SaveState = "complete"  // it is a good checkpoint
	SaveBroken    SaveState = "broken"    // it is written no more, and is no good checkpoint
	SaveShrinking SaveState = "shrinking" // it is complete, but much smaller than those before it
	SaveOverdue   SaveState = "overdue"   // there is no new checkpoint for much longer than usual
	SaveDisk      SaveState = "disk"      // the file system has no room for the next two
)

// SaveReport is about a checkpoint that a gang has written, or should have. What has the same step in its
// name counts as one checkpoint, of several Files; Path is the first of them.
type SaveReport struct {
	State SaveState `json:"state"`
	Checkpoint
	Files int       `json:"files,omitempty"`
	Begun time.Time `json:"begun"` // when its first byte was written, by the clock of the host
	Write Duration  `json:"write"` // from then to its last byte
	// Stall is the time by which the write has held up the training: the steps during the write took
	// so much longer than usual. It is nil if it is not known.
	Stall *Duration `json:"stall,omitempty"`
	Usual Duration  `json:"usual,omitempty"` // the usual time between two checkpoints; set with SaveOverdue
	Free  int64     `json:"free,omitempty"`  // free bytes on the disk; set with SaveDisk
	Why   string    `json:"why,omitempty"`   // why it is broken, or another remark
}

// Good reports whether a job can resume from the checkpoint.
func (r SaveReport) Good() bool { return r.State == SaveComplete || r.State == SaveShrinking }

// Problem reports whether the user should know at once.
func (r SaveReport) Problem() bool { return r.State != SaveComplete && r.State != SaveWriting }

// FailureSource is where a mean time between failures comes from.
type FailureSource string

// The sources of a mean time between failures.
const (
	FailuresGiven   FailureSource = "given"   // by the user
	FailuresOfJob   FailureSource = "job"     // earlier runs of the same job
	FailuresOfHosts FailureSource = "hosts"   // earlier runs on the same hosts
	FailuresUsual   FailureSource = "default" // the mean of a large cluster
)

// SaveInterval says how often a job saves, and how often it should.
type SaveInterval struct {
	Every    Duration      `json:"every"`             // time between two checkpoints; 0 if not known
	Cost     Duration      `json:"cost"`              // how long the training stands still for each
	Assumed  bool          `json:"assumed,omitempty"` // Cost is the time of writing; the stall is not known
	Failures Duration      `json:"failures"`          // mean time between two
	Source   FailureSource `json:"source"`
	Count    int           `json:"count,omitempty"` // of failures from which their mean was computed
	Best     Duration      `json:"best"`            // time between two checkpoints that loses the least
}
