package job

// Decision is what the supervisor does after an attempt.
type Decision string

// The decisions.
const (
	Succeed Decision = "succeed"
	Restart Decision = "restart"
	Stop    Decision = "stop"
)

// Verdict is a Decision with its reason.
type Verdict struct {
	Action  Decision `json:"action"`
	Reason  string   `json:"reason"`
	Exclude Excluded `json:"exclude"`
	// Wait is the back-off before a restart, without the random part that is added to it.
	Wait Duration `json:"wait,omitempty"`
	// Budget is set if the run stops because its retries are used up. Another run of the job
	// may still succeed.
	Budget bool `json:"budget_spent,omitempty"`
	// Deterministic is set if the run stops because the same failure came again at the same
	// step. Another run of the job would fail in the same way.
	Deterministic bool `json:"deterministic,omitempty"`
	// Avoid are checkpoints from which no later attempt starts, because the job had diverged.
	Avoid []Checkpoint `json:"avoid,omitempty"`
}
