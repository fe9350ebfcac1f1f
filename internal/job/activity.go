package job

// ProcessState is what the kernel says of a process.
type ProcessState string

// The states of a process, as in proc_pid_stat(5).
const (
	ProcessRunning  ProcessState = "running"
	ProcessSleeping ProcessState = "sleeping"
	ProcessDisk     ProcessState = "disk-sleep" // waits in the kernel for a file system or a device; no signal ends it
	ProcessStopped  ProcessState = "stopped"    // by a signal, as SIGSTOP
	ProcessTraced   ProcessState = "traced"     // stopped by a debugger
	ProcessZombie   ProcessState = "zombie"     // has ended, or its main thread has
)

// Activity is what a rank was doing when gangrun began to end its gang.
type Activity struct {
	Rank  int          `json:"rank"`
	Host  string       `json:"host"`
	State ProcessState `json:"state"`
	// Quiet is for how long it had printed nothing: since its start if it never had.
	Quiet Duration `json:"quiet"`
	// Age is for how long its gang had run on its host; 0 where that is not known.
	Age Duration `json:"age,omitempty"`
	// Idle is for how long it had told no new step; nil if it never told one.
	Idle *Duration `json:"idle,omitempty"`
}
