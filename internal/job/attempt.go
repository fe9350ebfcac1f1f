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
	Command   []string  `json:"command"` // the {{templates}} in it are not yet expanded
	Workdir   string    `json:"workdir"`
	Placement Placement `json:"placement"`
	// Env has the user's variables. They take precedence over everything that gangrun sets.
	Env           map[string]string `json:"-"`
	CheckpointDir string            `json:"checkpoint_dir,omitempty"`
	ResumeFrom    string            `json:"resume_from,omitempty"`
	// StopFile is the path of a file that gangrun makes to ask the ranks for a checkpoint. It is empty if
	// gangrun does not ask them by a file.
	StopFile string `json:"stop_file,omitempty"`
	// LogDir is an existing directory for the ranks' log files.
	LogDir string   `json:"log_dir"`
	Grace  Duration `json:"grace"`
	// Retries is how many restarts in a row the run may have without progress.
	Retries int   `json:"retries,omitempty"`
	Stdin   Stdin `json:"stdin"`
	// GPUVisibility is Spec.GPUVisibility.
	GPUVisibility GPUVisibility `json:"gpu_visibility,omitempty"`
	// TTY decides whether the ranks' standard output is a terminal.
	TTY TTY `json:"tty,omitempty"`
	// Show selects the ranks whose output is sent to the terminal while the gang runs.
	Show OutputMode `json:"show"`
	// Steps is the number of progress events of each rank that an agent reports immediately. It
	// reports later events at most once a second.
	Steps int `json:"steps,omitempty"`
	// Progress is Spec.Progress.
	Progress string `json:"progress,omitempty"`
	// MPI is how the ranks find each other. If it is MPIAuto, a Launcher finds out which MPI library the
	// program uses.
	MPI MPI `json:"mpi,omitempty"`
	// EnvCompat names the MPI library whose variables gangrun also sets. A Launcher ignores it if the program
	// uses an MPI library.
	EnvCompat EnvCompat `json:"env_compat,omitempty"`
	// Apps are the programs of a gang that has several, in rank order; empty when
	// every rank runs Command.
	Apps []App `json:"apps,omitempty"`
	// Pulses is true if the agents report what the ranks do.
	Pulses bool `json:"pulses,omitempty"`
	// Saves is true if gangrun watches the checkpoints that the ranks write. OwnDirs is true if each host may
	// have a checkpoint directory of its own, because nobody has checked that the directory is shared.
	Saves   bool `json:"saves,omitempty"`
	OwnDirs bool `json:"own_dirs,omitempty"`
	// Faulthandler is as in Spec.
	Faulthandler bool `json:"faulthandler,omitempty"`
	// InitTimeout is the time after which gangrun reports the ranks that have not called
	// MPI_Init; 0 means never.
	InitTimeout Duration `json:"init_timeout,omitempty"`
	// Contain makes the hosts discard everything that the ranks write, except in LogDir. If it
	// is nil, the hosts keep what the ranks write.
	Contain *Containment `json:"-"`
	// Box describes the containers in which the ranks run. If it is nil, the ranks run directly
	// on the hosts.
	Box *Box `json:"-"`
	// Hints are environment variables, as NAME=VALUE. gangrun sets each of them for the ranks if nothing else
	// sets it.
	Hints []string `json:"-"`
	// Watch names directories. Outcome.Changed has the files in them that change while the
	// ranks run.
	Watch *FileWatch `json:"-"`
	// NoMPI is true if it is known that the ranks use no MPI, because the user says so or
	// because the program is Python and imports none. A Launcher sets it.
	NoMPI bool `json:"-"`
	// Adopt is true if an earlier controller has started the gang. The Launcher then starts nothing. A rank
	// whose agent is gone counts as lost.
	Adopt bool `json:"-"`
}

// App returns the program that a rank runs, and the number of the program.
func (a Attempt) App(rank int) (App, int) {
	for i, app := range a.Apps {
		if rank < app.Ranks {
			return app, i
		}
		rank -= app.Ranks
	}
	return App{Ranks: len(a.Placement.Ranks), Command: a.Command}, 0
}

// GangName returns the name of the attempt's gang among agents, which is RUN/NUMBER.
func (a Attempt) GangName() string { return a.Run + "/" + strconv.Itoa(a.Number) }

// Trial reports whether the attempt is a preflight trial.
func (a Attempt) Trial() bool { return a.Number == 0 }

// Containment describes what contained ranks see of the host. They see all files of the host,
// and what they write is discarded. Paths are absolute.
type Containment struct {
	// Work has the directories in which the job works. Needed has other paths that the job names. If a host
	// cannot discard what is written below a path of Work or Needed, contained ranks cannot run on that host.
	Work, Needed []string
	// Empty is a directory that the ranks see as empty; "" means none.
	Empty string
}

// FileWatch names directories. Before and after a trial, an agent looks at the files below Dirs, except those
// below But. It reports which files have changed.
type FileWatch struct {
	Dirs, But []string
}

// Changed lists the files of one host that were changed, made or removed while ranks ran.
type Changed struct {
	Host    string   `json:"host"`
	Made    []string `json:"made,omitempty"`
	Changed []string `json:"changed,omitempty"` // changed or removed files
	More    int64    `json:"more,omitempty"`    // number of further files, which are not in Made or Changed
	// Partly is set if there were too many files to compare: some changes may be missing.
	Partly bool `json:"partly,omitempty"`
}

// UncontainedError is the error if a host cannot discard what the ranks write (see Containment). No rank was
// started.
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
	Exited    ExitStatus = "exited"    // it ended by itself, with Code
	Signalled ExitStatus = "signalled" // Signal ended it
	Lost      ExitStatus = "lost"      // its agent is gone, so nobody has seen how it ended
	Unstarted ExitStatus = "unstarted" // it could not be started; Text says why
)

// Exit says how one rank ended. It is not an error.
type Exit struct {
	Rank   int        `json:"rank"`
	Host   string     `json:"host"`
	Status ExitStatus `json:"status"`
	// Code is 0 to 255 if Status is Exited. If Status is Unstarted, it is the code that a shell
	// would return: 127 if the program is missing, 126 if it cannot be executed. Otherwise it
	// is 0.
	Code   int       `json:"code"`
	Signal int       `json:"signal"` // number of the signal if Status is Signalled
	Core   bool      `json:"core,omitempty"`
	Time   time.Time `json:"time"`
	PID    int       `json:"pid,omitempty"`
	// Stopped is set if gangrun had begun to end the rank before the rank ended.
	Stopped bool `json:"stopped,omitempty"`
	// Aborted is set if the rank called MPI_Abort. Code is then the low byte of the argument of
	// MPI_Abort. Such an exit is a failure even if Code is 0.
	Aborted bool `json:"aborted,omitempty"`
	// Fault is why gangrun counts an exit with code 0 as a failure, as in "it never called
	// MPI_Finalize".
	Fault string `json:"fault,omitempty"`
	// Reason is why gangrun counts the rank as lost, as not started, or as failed. It is empty if only Text or
	// Fault says why.
	Reason Reason `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"` // why the rank could not be started or was lost, or the message of MPI_Abort
	// Joined is the rank's last known state in the wire-up.
	Joined Joined `json:"joined,omitempty"`
}

// Good reports whether the rank ended by itself, with code 0 and no fault.
func (e Exit) Good() bool {
	return e.Status == Exited && e.Code == 0 && !e.Aborted && e.Fault == ""
}

// ShellCode returns the code that a shell would show: the exit code, or 128 + signal. It is 0 if a shell would
// show no code, because the rank is lost, or could not be started for a reason other than its program.
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
	// Exits has one entry for each rank, in the order in which gangrun learned of the exits.
	Exits []Exit `json:"exits"`
	// Unreaped names ranks that may still be running.
	Unreaped []Unreaped `json:"unreaped,omitempty"`
	// Lines has the last lines of the ranks that did not end well, and records from the kernel logs of the
	// hosts. They are in no particular order.
	Lines []Line `json:"-"`
	// Changed has the files that changed in the directories of Attempt.Watch. For each host, it has a limited
	// number of files.
	Changed []Changed `json:"changed,omitempty"`
	// Mixed is set if contained ranks could not write all files that the user may write,
	// because some files have another owner or group.
	Mixed bool `json:"mixed,omitempty"`
	// Wireup is the last known state of the wire-up; nil if no state is known.
	Wireup *Wireup `json:"wireup,omitempty"`
	// AgentsEnded has those hosts of an adopted gang on which the agent and the ranks ended before the
	// takeover, perhaps because the agent had no controller for too long.
	AgentsEnded []string `json:"forsaken,omitempty"`
}

// Unreaped is a rank that may still be running.
type Unreaped struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
}

// Good reports whether every rank of a gang of that size ended well (see Exit.Good).
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

// First returns the first exit that is a failure and that gangrun did not cause.
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
