package job

// Reason says why gangrun counts a rank as lost or as not started, or why an exit with code 0 is a failure. It
// also marks lines of evidence that gangrun itself has written. Programs decide by the Reason; the text that is
// stored beside it is only for people.
type Reason string

// The reasons.
const (
	ReasonNone Reason = ""

	// Reasons why ranks are lost.
	ReasonHostSilent       Reason = "host-silent"       // no contact with the host for too long
	ReasonHostGone         Reason = "host-gone"         // the host closed its connections and no longer answers
	ReasonHostRestarted    Reason = "host-restarted"    // the host was booted again while the ranks ran
	ReasonControllerPaused Reason = "controller-paused" // the agent ended because the controller was stopped or suspended for too long
	ReasonAgentGone        Reason = "agent-gone"        // the host answers, but its agent is gone
	ReasonNotReached       Reason = "not-reached"       // no agent could be started on the host
	ReasonContainerEnded   Reason = "container-ended"   // the container of the rank ended, with the agent in it
	ReasonContainerMemory  Reason = "container-memory"  // the container of the rank ended because its memory was used up

	// Reasons why ranks could not be started.
	ReasonMixedMPI    Reason = "mixed-mpi"    // the gang's programs use different MPIs
	ReasonNoContainer Reason = "no-container" // the host cannot start the container of the rank

	// Reasons why ranks that exited with code 0 have failed.
	ReasonOutputLost     Reason = "output-lost"      // not all output of the rank arrived from its host
	ReasonLogWriteFailed Reason = "log-write-failed" // not all output of the rank could be written to its log
	ReasonNoInit         Reason = "no-mpi-init"      // the rank never called MPI_Init, although other ranks did
	ReasonNoFinalize     Reason = "no-mpi-finalize"  // the rank called MPI_Init, but never MPI_Finalize

	// A reason for both ranks and lines.
	ReasonSingleton Reason = "singleton" // each rank runs as rank 0 of 1

	// Reasons for lines only.
	ReasonDaemonLost Reason = "mpi-daemon-lost" // Open MPI's daemon on a host died, or does not answer
	ReasonOOMKills   Reason = "oom-kills"       // the kernel's count of out-of-memory kills has risen
)

// StopReason says why gangrun ends a gang.
type StopReason string

// Order is the request for which gangrun ends a gang that has not failed, and who or what has made it.
type Order struct {
	Ended  Ended  `json:"ended"`
	Signal int    `json:"signal,omitempty"` // the signal that has cancelled the run; 0 if no signal has
	By     string `json:"by,omitempty"`     // the command that has cancelled the run, its user and its host; empty for a signal
}

// The reasons to end a gang.
const (
	StopFailure StopReason = "failure" // a rank has failed, or a host, the lease or the controller is lost
	StopOrder   StopReason = "order"   // the user, a time limit or the end of gangrun ends the gang
	StopHurry   StopReason = "hurry"   // like StopOrder, but without a grace period
)
