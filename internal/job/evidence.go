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
	// SourceErrorFile is the file that TORCHELASTIC_ERROR_FILE names. A rank writes an
	// exception there.
	SourceErrorFile Source = "error-file"
	// SourceFlightRecord is a dump of PyTorch's flight recorder.
	SourceFlightRecord Source = "flight-record"
)

// Line is one line of text from which a cause may be found.
type Line struct {
	Source Source `json:"source"`
	Host   string `json:"host"`
	Rank   int    `json:"rank"` // -1 if the line belongs to no rank
	// File is the path of the log file. For output of ranks and of MPI's own programs, it is a
	// path on the controller's machine. For everything else, it is a path on Host.
	File string `json:"file"`
	Line int    `json:"line"` // number in File, from 1; 0 when unknown
	// Time is when gangrun saw the line, by the controller's clock. It is zero if that is not
	// known, for instance if gangrun reads a log later.
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text"`
	// Reason is set if gangrun itself has written the line.
	Reason Reason `json:"reason,omitempty"`
	// Record is what a flight recorder has written down about the rank. It is nil if the line is not from a
	// flight recorder.
	Record *FlightRecord `json:"record,omitempty"`
}

// Evidence is everything that a diagnosis may look at.
type Evidence struct {
	// Ranks is the size of the gang; 0 when it is not known.
	Ranks int `json:"ranks"`
	// Trial is true if the gang was a preflight trial.
	Trial   bool    `json:"trial,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Lines of different streams may be mixed; the lines of each stream are in order.
	Lines []Line `json:"lines"`
	// Ended is why gangrun ended the gang, if no rank had failed before.
	Ended Ended `json:"ended,omitempty"`
	// Activity is what the ranks were doing when gangrun began to end the gang, as far as that is known.
	Activity []Activity `json:"activity,omitempty"`
	// Command is the job's command.
	Command []string `json:"command,omitempty"`
}

// Ended is why gangrun ended a gang in which no rank had failed.
type Ended string

// The values of Ended.
const (
	EndedNot       Ended = ""
	EndedTimeLimit Ended = "time-limit" // the time limit of the run
	EndedCancelled Ended = "cancelled"

	EndedBatchLimit Ended = "batch-time-limit" // the time limit of the batch job
	EndedPreempted  Ended = "preempted"        // another job, or a requeue, took the hosts of the batch job
	EndedNodeFailed Ended = "node-failed"      // a node of the batch job has failed
)
