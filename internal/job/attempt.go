package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Attempt is everything that a launcher needs to start one gang.
type Attempt struct {
	Run string `json:"run"`
	// Number counts from 1; a trial has number 0.
	Number    int       `json:"number"`
	Command   []string  `json:"command"` // with its {{templates}} unexpanded
	Workdir   string    `json:"workdir"`
	Placement Placement `json:"placement"`
	// Env has the user's variables. They take precedence over everything that gangrun sets.
	Env           map[string]string `json:"-"`
	CheckpointDir string            `json:"checkpoint_dir,omitempty"`
	ResumeFrom    string            `json:"resume_from,omitempty"`
	// LogDir is where the ranks' log files go; it exists.
	LogDir string   `json:"log_dir"`
	Grace  Duration `json:"grace"`
	// Retries is how many restarts without progress the job may have.
	Retries int   `json:"retries,omitempty"`
	Stdin   Stdin `json:"stdin"`
	// GPUVisibility is that of the Spec.
	GPUVisibility GPUVisibility `json:"gpu_visibility,omitempty"`
	// TTY decides whether the ranks' standard output is a terminal.
	TTY TTY `json:"tty,omitempty"`
	// Show selects the ranks whose output is sent to the terminal while the gang runs.
	Show OutputMode `json:"show"`
	// Steps is the number of progress events of each rank that are reported immediately; later ones
	// may be reported once a second.
	Steps int `json:"steps,omitempty"`
	// MPI is how the ranks find each other. With MPIAuto, a Launcher decides by the
	// program's own libraries.
	MPI MPI `json:"mpi,omitempty"`
	// EnvCompat names the MPI whose variables are set too. A Launcher ignores it if
	// the program has an MPI library.
	EnvCompat EnvCompat `json:"env_compat,omitempty"`
	// Apps are the programs of a gang that has several, in rank order; empty when
	// every rank runs Command.
	Apps []App `json:"apps,omitempty"`
	// InitTimeout is the time after which gangrun reports which ranks have not called MPI_Init;
	// 0 is never.
	InitTimeout Duration `json:"init_timeout,omitempty"`
	// Contain asks the hosts to discard everything that the ranks write, except in
	// LogDir; nil keeps it.
	Contain *Containment `json:"-"`
	// Box describes the containers in which the ranks run; nil: they run on the hosts themselves.
	Box *Box `json:"-"`
	// Hints are variables, as NAME=VALUE, that are set for the ranks if nothing else sets them.
	Hints []string `json:"-"`
	// Watch asks which files in some directories change while the ranks run.
	Watch *FileWatch `json:"-"`
	// NoMPI is true if it is known that the ranks use no MPI, because the user says so or
	// because the program is Python and imports none. A Launcher sets it.
	NoMPI bool `json:"-"`
	// Adopt is true if an earlier controller has started the gang. Nothing is started then, and
	// ranks whose agent is gone are lost.
	Adopt bool `json:"-"`
}

// App returns the program that a rank runs and its number.
func (a Attempt) App(rank int) (App, int) {
	for i, app := range a.Apps {
		if rank < app.Ranks {
			return app, i
		}
		rank -= app.Ranks
	}
	return App{Ranks: len(a.Placement.Ranks), Command: a.Command}, 0
}

// GangName returns the name by which agents know the gang of the attempt: RUN/NUMBER.
func (a Attempt) GangName() string { return a.Run + "/" + strconv.Itoa(a.Number) }

// Trial reports whether the attempt is a preflight trial.
func (a Attempt) Trial() bool { return a.Number == 0 }

// Containment describes the view of the host that contained ranks have: they see
// everything as it is on the host, and nothing that they write is kept. Paths are
// absolute.
type Containment struct {
	// Work has the directories that the job works in; Needed has other paths that it names. If a
	// host cannot discard what is written below one of them, contained ranks cannot run there.
	Work, Needed []string
	// Empty is a directory that the ranks find empty; "" is none.
	Empty string
}

// FileWatch names directories whose files are compared before and after a trial (Dirs), except
// those below But.
type FileWatch struct {
	Dirs, But []string
}

// Changed are files of one host that were changed, made or removed while ranks ran.
type Changed struct {
	Host    string   `json:"host"`
	Made    []string `json:"made,omitempty"`
	Changed []string `json:"changed,omitempty"` // or removed
	More    int64    `json:"more,omitempty"`    // how many others there are
	// Partly is set if there were too many files to compare: some changes may be missing.
	Partly bool `json:"partly,omitempty"`
}

// UncontainedError is the error if a host cannot contain ranks. No rank was started.
type UncontainedError struct {
	Host   string
	Reason string
}

// Error names the host.
func (e *UncontainedError) Error() string { return e.Host + " " + e.Reason }

// LogName returns the name of a rank's log file; stream is "out" or "err".
func LogName(rank int, stream string) string { return fmt.Sprintf("rank-%04d.%s", rank, stream) }

// ExitStatus says how a rank ended.
type ExitStatus string

// The exit statuses.
const (
	Exited    ExitStatus = "exited"    // by itself, with Code
	Signalled ExitStatus = "signalled" // by Signal
	Lost      ExitStatus = "lost"      // its end was not seen: its agent is gone
	Unstarted ExitStatus = "unstarted" // it could not be started; Text says why
)

// Exit is the end of one rank: data, never an error.
type Exit struct {
	Rank   int        `json:"rank"`
	Host   string     `json:"host"`
	Status ExitStatus `json:"status"`
	// Code is 0 to 255 if Exited. If Unstarted, it is the code of a shell: 127 for a missing
	// program, 126 for one that cannot be executed, otherwise 0.
	Code   int       `json:"code"`
	Signal int       `json:"signal"` // number, when Signalled
	Core   bool      `json:"core,omitempty"`
	Time   time.Time `json:"time"`
	PID    int       `json:"pid,omitempty"`
	// Stopped is set if gangrun had begun to end the rank before it ended.
	Stopped bool `json:"stopped,omitempty"`
	// Aborted is set if the rank called MPI_Abort. Code is then the low byte of the code of
	// MPI_Abort, and 0 is a failure, too.
	Aborted bool `json:"aborted,omitempty"`
	// Fault is why an exit with code 0 is a failure, as in "it never called MPI_Finalize".
	Fault string `json:"fault,omitempty"`
	// Reason is why gangrun counts the rank as lost, unstarted or at fault; empty if there
	// is only the text.
	Reason Reason `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"` // why it could not be started or was lost, or the message of MPI_Abort
	// Joined is the rank's last known state in the wire-up.
	Joined Joined `json:"joined,omitempty"`
}

// Good reports whether the rank ended by itself, with code 0 and no fault.
func (e Exit) Good() bool {
	return e.Status == Exited && e.Code == 0 && !e.Aborted && e.Fault == ""
}

// ShellCode returns the code that a shell would show: the exit code, or 128 + signal. It is 0 if
// there is none: the rank is lost, or could not be started and its program is not the reason.
func (e Exit) ShellCode() int {
	if e.Status == Signalled {
		return 128 + e.Signal
	}
	return e.Code
}

// String describes the exit, as in "rank 2 on h1 was killed by signal 9 (SIGKILL)".
func (e Exit) String() string {
	who := fmt.Sprintf("rank %d on %s ", e.Rank, e.Host)
	switch e.Status {
	case Exited:
		what := fmt.Sprintf("exited with code %d", e.Code)
		if e.Aborted {
			what = fmt.Sprintf("called MPI_Abort and exited with code %d", e.Code)
		}
		if e.Fault != "" {
			what += ", but " + e.Fault
		}
		return who + what
	case Signalled:
		return who + fmt.Sprintf("was ended by signal %d (%s)", e.Signal, SignalName(e.Signal))
	case Unstarted:
		return who + "could not be started: " + e.Text
	default:
		return who + "was lost: " + e.Text
	}
}

// Outcome is how an attempt ended.
type Outcome struct {
	// Exits has one entry for each rank, in the order in which they were seen.
	Exits []Exit `json:"exits"`
	// Unreaped names ranks that may still be running.
	Unreaped []Unreaped `json:"unreaped,omitempty"`
	// Lines are the last lines of the ranks that did not end well, and records of the hosts'
	// kernels, in no particular order.
	Lines []Line `json:"-"`
	// Changed are the changed files for which Attempt.Watch asks. Their number is limited for
	// each host.
	Changed []Changed `json:"changed,omitempty"`
	// Mixed is set if contained ranks could not write all files that the user may write,
	// because some files have another owner or group.
	Mixed bool `json:"mixed,omitempty"`
	// Wireup is the last known state of how the ranks find each other; nil if it is not
	// known.
	Wireup *Wireup `json:"wireup,omitempty"`
	// AgentsEnded are the hosts of an adopted gang on which agent and ranks had ended before
	// the takeover, perhaps because the agent had no controller for too long.
	AgentsEnded []string `json:"forsaken,omitempty"`
}

// Unreaped is a rank that may still be running.
type Unreaped struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
}

// Good reports whether every rank of a gang of that size ended by itself with
// code 0.
func (o Outcome) Good(ranks int) bool {
	good := 0
	for _, e := range o.Exits {
		if !e.Good() {
			return false
		}
		good++
	}
	return good == ranks && len(o.Unreaped) == 0
}

// First returns the first exit that was not good and that gangrun did not cause.
func (o Outcome) First() (Exit, bool) {
	i := slices.IndexFunc(o.Exits, func(e Exit) bool { return !e.Good() && !e.Stopped })
	if i < 0 {
		return Exit{}, false
	}
	return o.Exits[i], true
}

// MarshalJSON encodes exits as a list even when there are none.
func (o Outcome) MarshalJSON() ([]byte, error) {
	type plain Outcome
	if o.Exits == nil {
		o.Exits = []Exit{}
	}
	return json.Marshal(plain(o))
}
