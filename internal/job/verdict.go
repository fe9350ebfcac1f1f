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
	// Wait is the back-off before a restart, before jitter.
	Wait Duration `json:"wait,omitempty"`
	// Budget says that the retries were used up: another run may still succeed.
	Budget bool `json:"budget_spent,omitempty"`
}
