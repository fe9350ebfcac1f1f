package job

// State is where a run is.
type State string

// The states. The first group is of a live run; StateLost is never written: it is
// what a live state means once the controller no longer exists.
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
