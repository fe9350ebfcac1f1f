package job

// Decision is what the supervisor decides to do after an attempt.
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
	// Wait is how long the run waits before a restart. It does not include the random time that the supervisor
	// adds.
	Wait Duration `json:"wait,omitempty"`
	// Budget is true if the run stops because its retries are used up. Another run of the job may still
	// succeed.
	Budget bool `json:"budget_spent,omitempty"`
	// Deterministic is true if the run stops because the same failure came again at the same step. Another run
	// of the job would fail in the same way.
	Deterministic bool `json:"deterministic,omitempty"`
	// Avoid has checkpoints from which no later attempt may start, because the job had diverged before it wrote
	// them.
	Avoid []Checkpoint `json:"avoid,omitempty"`
}
