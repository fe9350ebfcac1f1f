package job

import "time"

// Source is where a Line was read.
type Source string

// The sources.
const (
	SourceStdout Source = "stdout"
	SourceStderr Source = "stderr"
	SourceKernel Source = "kernel" // the host's kernel log or counters
	SourceAgent  Source = "agent"  // gangrun's agent on the host
	// SourceErrorFile is the exception that a rank has written to the file that
	// TORCHELASTIC_ERROR_FILE names.
	SourceErrorFile Source = "error-file"
)

// Line is one line of text that may prove something.
type Line struct {
	Source Source `json:"source"`
	Host   string `json:"host"`
	Rank   int    `json:"rank"` // -1 if it belongs to no rank
	// File is the path of the log file. For output of ranks and of MPI's own programs, it is a
	// path on the controller's machine; for everything else, on Host.
	File string `json:"file"`
	Line int    `json:"line"` // number in File, from 1; 0 when unknown
	// Time is when the line was seen, by the controller's clock. It is zero if that is not
	// known, for instance in a log that is read later.
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text"`
	// Reason is set if gangrun itself has written the line.
	Reason Reason `json:"reason,omitempty"`
}

// Evidence is everything that a diagnosis may look at.
type Evidence struct {
	// Ranks is the size of the gang; 0 when it is not known.
	Ranks int `json:"ranks"`
	// Trial is true if the gang was a preflight trial.
	Trial   bool    `json:"trial,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Lines may mix the streams of ranks; the lines of each stream are in order.
	Lines []Line `json:"lines"`
	// Ended is why gangrun ended the gang, if it did so before the gang had failed.
	Ended Ended `json:"ended,omitempty"`
	// Activity is what the ranks were doing when gangrun began to end the gang, as
	// far as it is known.
	Activity []Activity `json:"activity,omitempty"`
	// Command is the job's command, for signatures that name its program.
	Command []string `json:"command,omitempty"`
}

// Ended is why gangrun ended a gang that had not failed.
type Ended string

// The values of Ended.
const (
	EndedNot       Ended = ""
	EndedTimeLimit Ended = "time-limit" // of the run
	EndedCancelled Ended = "cancelled"

	EndedBatchLimit Ended = "batch-time-limit" // of the batch job
	EndedPreempted  Ended = "preempted"        // another job, or a requeue, took the hosts of the batch job
	EndedNodeFailed Ended = "node-failed"      // a node of the batch job has failed
)
