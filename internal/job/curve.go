package job

import (
	"slices"
	"strings"
	"time"
)

// CurveVerdict is what gangrun says about a curve of a run. docs/curves.md has the kinds.
type CurveVerdict struct {
	Kind      string    `json:"kind"`   // one of CurveKinds
	Metric    string    `json:"metric"` // the metric by which gangrun judges the run
	Source    string    `json:"source"` // the file that has the metric, or "progress of rank N"
	Since     int64     `json:"since"`  // the step since which the verdict has been true
	SinceTime time.Time `json:"since_time"`
	ByEpoch   bool      `json:"by_epoch,omitempty"` // Since and Step count epochs
	Step      int64     `json:"step"`               // the step at which gangrun found the verdict
	Value     *float64  `json:"value"`              // the last value of the metric; nil if it is not finite
	Text      string    `json:"text"`
	// Confidence is from 0 to 1. Sure is true if it is high enough to end a run.
	Confidence float64 `json:"confidence"`
	Sure       bool    `json:"sure"`
	// Saves is how many hours of GPU time the run still needs until its planned end, and so what an end of the
	// run would save. For the kind "slower", it is the additional GPU time that the lower throughput costs. It
	// is nil if that is not known.
	Saves  *float64    `json:"saves_gpu_hours"`
	Action EarlyAction `json:"action"` // what gangrun does about the verdict
}

// CurveKinds lists the kinds of verdicts on curves, as internal/curve/judge names them.
func CurveKinds() []string {
	return []string{"not-finite", "diverged", "flat", "plateau", "reached", "will-miss", "below-peers", "slower"}
}

// EarlyAction is what gangrun does about a verdict on a curve.
type EarlyAction string

// The values of EarlyAction.
const (
	EarlyOff    EarlyAction = "off"
	EarlyAdvise EarlyAction = "advise" // tell the user
	EarlyEnd    EarlyAction = "stop"   // end the run if the verdict is sure, and otherwise tell the user
)

// EarlyActions lists every EarlyAction.
func EarlyActions() []EarlyAction { return []EarlyAction{EarlyOff, EarlyAdvise, EarlyEnd} }

// EarlyStop is one EarlyAction for all kinds of verdicts, as in "advise", or an EarlyAction for each of some
// kinds, as in "plateau=stop,flat=off".
type EarlyStop string

// For returns what gangrun does about verdicts of a kind.
func (e EarlyStop) For(kind string) EarlyAction {
	if slices.Contains(EarlyActions(), EarlyAction(e)) {
		return EarlyAction(e)
	}
	for part := range strings.SplitSeq(string(e), ",") {
		if name, action, _ := strings.Cut(part, "="); name == kind {
			return EarlyAction(action)
		}
	}
	if kind == "not-finite" || kind == "diverged" {
		return EarlyEnd
	}
	return EarlyAdvise
}

// Curve is what the user knows of the curves of a job.
type Curve struct {
	Metric   string `json:"metric,omitempty"` // the metric by which gangrun judges; empty if gangrun chooses
	Goal     Goal   `json:"goal,omitempty"`   // empty means auto
	Target   string `json:"target,omitempty"` // a number; empty if there is none
	Total    int    `json:"total,omitempty"`  // planned number of steps; 0 if only the job knows it
	DecayEnd int    `json:"decay_end"`        // the step after which the learning rate no longer falls; -1 if not known
}

// Goal is the direction in which a metric is better.
type Goal string

// The values of Goal.
const (
	GoalAuto Goal = "auto" // the name of the metric decides
	GoalMin  Goal = "min"
	GoalMax  Goal = "max"
)

// Goals lists every Goal.
func Goals() []Goal { return []Goal{GoalAuto, GoalMin, GoalMax} }

// Diverge says how gangrun starts a job again that has diverged.
type Diverge struct {
	Resume    DivergeResume     `json:"resume,omitempty"`
	SkipSteps int               `json:"skip_steps,omitempty"` // GANGRUN_SKIP_STEPS
	Env       map[string]string `json:"env,omitempty"`        // takes precedence over Spec.Env
	Times     int               `json:"times,omitempty"`
}

// DivergeResume says whether gangrun starts a job again that has diverged; empty means off.
type DivergeResume string

// The values of DivergeResume.
const (
	DivergeOff     DivergeResume = "off"
	DivergeEarlier DivergeResume = "earlier" // start again from a checkpoint that is older than the rise
)

// DivergeResumes lists every DivergeResume.
func DivergeResumes() []DivergeResume { return []DivergeResume{DivergeOff, DivergeEarlier} }
