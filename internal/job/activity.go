package job

// ProcessState is the state of a process, as the kernel reports it.
type ProcessState string

// The states of a process, as in proc_pid_stat(5).
const (
	ProcessRunning  ProcessState = "running"
	ProcessSleeping ProcessState = "sleeping"
	// The process waits in the kernel for a file system or a device. No signal ends it.
	ProcessDisk    ProcessState = "disk-sleep"
	ProcessStopped ProcessState = "stopped" // stopped by a signal such as SIGSTOP
	ProcessTraced  ProcessState = "traced"  // stopped by a debugger
	ProcessZombie  ProcessState = "zombie"  // the process or its main thread has ended
)

// Activity is what a rank was doing when gangrun began to end its gang.
type Activity struct {
	Rank  int          `json:"rank"`
	Host  string       `json:"host"`
	State ProcessState `json:"state"`
	// Quiet is the time since the rank last printed something, or since its start if it printed
	// nothing.
	Quiet Duration `json:"quiet"`
	// Age is how long the rank's gang had run on its host; 0 if that is not known.
	Age Duration `json:"age,omitempty"`
	// Idle is the time since the rank last printed a new step; nil if it never printed a step.
	Idle *Duration `json:"idle,omitempty"`
}
