package job

// State is where a run is.
type State string

// The states. Those of the first group are states of a run with a controller. StateLost is never
// written: a run of the first group is lost if its controller no longer exists.
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
