package job

// State is the state of a run.
type State string

// The states. A run in a state of the first group has a controller. No journal has StateLost: a run has this
// state if its journal ends with a state of the first group, but its controller no longer exists.
const (
	StatePreflight State = "preflight"
	StateWaiting   State = "waiting"
	StateLaunching State = "launching"
	StateRunning   State = "running"
	StateStopping  State = "stopping"

	StateSucceeded       State = "succeeded"
	StateFailed          State = "failed"
	StateStoppedEarly    State = "stopped-early"
	StateCancelled       State = "cancelled"
	StatePreflightFailed State = "preflight-failed"
	StateNoPlacement     State = "no-placement"

	StateLost State = "lost"
)

// Final reports whether a run in this state has ended.
func (s State) Final() bool {
	switch s {
	case StatePreflight, StateWaiting, StateLaunching, StateRunning, StateStopping, "":
		return false
	}
	return true
}
