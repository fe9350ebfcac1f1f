package job

import "time"

// Source says where a Line was read.
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
	Rank   int    `json:"rank"` // -1 when it belongs to no rank
	// File is the path of the log file: where the controller is, of what ranks and MPI's
	// own programs print; on Host, of all else.
	File string `json:"file"`
	Line int    `json:"line"` // number in File, from 1; 0 when unknown
	// Time is when the line was seen, on the controller's clock; zero when it
	// is not known (a log that is read afterwards).
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text"`
	// Reason is what a line of gangrun itself says; empty for all others.
	Reason Reason `json:"reason,omitempty"`
}

// Evidence is everything that a diagnosis may look at.
type Evidence struct {
	// Ranks is the size of the gang; 0 when it is not known.
	Ranks int `json:"ranks"`
	// Trial says that the gang was a preflight trial.
	Trial   bool    `json:"trial,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Lines belong to one rank's stream in file order; streams may be mixed.
	Lines []Line `json:"lines"`
	// Ended is what ended the gang from gangrun's side, if anything did.
	Ended Ended `json:"ended,omitempty"`
	// Activity is what the ranks were doing when gangrun began to end the gang, as
	// far as it is known.
	Activity []Activity `json:"activity,omitempty"`
	// Command is the job's, for signatures that name its program.
	Command []string `json:"command,omitempty"`
}

// Ended says why gangrun itself ended a gang.
type Ended string

// The reasons for which gangrun ends a gang that has not failed.
const (
	EndedNot       Ended = ""
	EndedTimeLimit Ended = "time-limit"
	EndedCancelled Ended = "cancelled"
)
