// Package judge decides by the curves of a training run whether the run should go on. A Judge gets the values
// of the curves in the order in which the job reports them. With each value, it gets the step, and the GPU time
// that the run had used. A Judge has no side effects, and does not read the clock. docs/curves.md has the
// rules, and figures about how often they are right.
package judge

import "math"

// Kind is the kind of a verdict.
type Kind string

// The kinds of verdicts.
const (
	NotFinite  Kind = "not-finite"  // the loss is NaN or infinite, several times in a row
	Diverged   Kind = "diverged"    // the loss has risen and stays high
	Flat       Kind = "flat"        // the loss has never fallen
	Plateau    Kind = "plateau"     // the metric no longer improves
	Reached    Kind = "reached"     // the metric has reached the target
	WillMiss   Kind = "will-miss"   // the metric will not reach the target by the end of the run
	BelowPeers Kind = "below-peers" // the metric is worse than in earlier runs of the same job at the same step
	Slower     Kind = "slower"      // the throughput has fallen
)

// Kinds lists the kinds of verdicts in the order in which Verdicts returns them.
var Kinds = []Kind{NotFinite, Diverged, Flat, Plateau, Reached, WillMiss, BelowPeers, Slower}

// Sure is the lowest confidence with which a verdict may end a run, if the user wants that. Verdicts with a
// lower confidence are only advice.
const Sure = 0.9

// Verdict is a finding about a run at a step. At a later step, it may no longer be true.
type Verdict struct {
	Kind       Kind    `json:"kind"`
	Since      int64   `json:"since"` // the first step at which the verdict was true
	Step       int64   `json:"step"`  // the step at which the Judge found it
	Sentence   string  `json:"sentence"`
	Confidence float64 `json:"confidence"` // from 0 to 1
	Sure       bool    `json:"sure"`       // Confidence is at least the constant Sure
	// Saves is the GPU time, in hours, that the run still needs until its planned end. It is nil if that is
	// not known. For the kind Slower, it is the additional GPU time that the lower throughput costs until the
	// planned end.
	Saves *float64 `json:"saves_gpu_hours"`
}

// Signal says what a value measures.
type Signal uint8

// The signals of a run.
const (
	Train      Signal = iota // training loss; lower is better
	Validation               // the metric by which the run is judged, on validation data
	Rate                     // learning rate
	GradNorm                 // norm of the gradient
	LossScale                // the loss scale of mixed precision
	Skipped                  // number of steps that mixed precision has skipped so far
	Throughput               // work per time in any unit
	signals
)

// Setup has what is known about a run before it begins. In the zero Setup, nothing is known.
type Setup struct {
	Higher bool  // higher values of Validation are better
	Total  int64 // planned number of steps; 0 if not known
	// Settled is the step after which the learning rate no longer falls; 0 means that the rate is constant. It
	// comes from the user or from an earlier run. It is nil if the step is not known; no verdict of kind
	// Plateau is then sure.
	Settled *int64
	Target  *float64 // the value that Validation should reach, or Train if there is no Validation
	Earlier []Trace  // earlier runs of the same job that succeeded
	// Indirect is true if the loss does not tell how good the model is, as in reinforcement learning, and with
	// GANs and variational models. No verdict of kind Diverged is then sure.
	Indirect bool
}

// Judge judges one run. The memory of a Judge is bounded.
type Judge struct {
	setup   Setup
	curves  [signals]series
	step    int64   // the highest step
	gpu     float64 // GPU-seconds that the run has used so far
	first   int64   // the first step
	began   float64 // GPU-seconds at the first step
	begun   bool
	bad     streak // the last values in a row that are not finite
	scaling int    // number of falls of LossScale
}

// streak describes values in a row that are not finite.
type streak struct {
	n        int
	since    int64
	of       Signal
	finite   bool // there was a finite value before them
	lowering bool // the loss scale was falling at the same time
}

// New returns a Judge for one run.
func New(s Setup) *Judge { return &Judge{setup: s} }

// Add adds a value of a signal at a step. gpu is how many GPU-seconds the run had used by then. After a restart
// from a checkpoint, the job reports steps for the second time. If step is such a step, Add first removes all
// values from that step on.
func (j *Judge) Add(of Signal, step int64, gpu, value float64) {
	if of >= signals || step < 0 || math.IsNaN(gpu) {
		return
	}
	if !j.begun {
		j.begun, j.first, j.began = true, step, gpu
	}
	c := &j.curves[of]
	if math.IsNaN(value) || math.IsInf(value, 0) {
		j.notFinite(of, step)
		j.move(step, gpu)
		return
	}
	if of == j.bad.of {
		j.bad.n, j.bad.finite, j.bad.lowering = 0, true, false
	}
	if of == LossScale && c.n > 0 && value < c.newest().value {
		j.scaling++
		j.bad.lowering = true
	}
	if c.n > 0 && step <= c.newest().step {
		if of == Train && step < j.step {
			j.step, j.bad.n = step, 0 // the run has resumed from an earlier step
		}
		c.cut(step)
	}
	c.add(point{step, gpu, value})
	j.move(step, gpu)
}

func (j *Judge) notFinite(of Signal, step int64) {
	if of != Train && of != Validation {
		return
	}
	if j.bad.n > 0 && j.bad.of != of {
		if of == Validation {
			return // the training loss is judged
		}
		j.bad.n = 0
	}
	if j.bad.n == 0 {
		j.bad = streak{since: step, of: of, finite: j.curves[of].n > 0, lowering: j.bad.lowering}
	}
	j.bad.n++
}

func (j *Judge) move(step int64, gpu float64) {
	j.step = max(j.step, step)
	j.gpu = max(j.gpu, gpu)
}

// judged returns the curve of the metric by which the run is judged, and whether higher values are better.
func (j *Judge) judged() (*series, bool) {
	if j.curves[Validation].n > 0 {
		return &j.curves[Validation], j.setup.Higher
	}
	return &j.curves[Train], false
}

// Verdicts returns the verdicts that are true now.
func (j *Judge) Verdicts() []Verdict {
	return j.those(j.finite, j.diverged, j.flat, j.plateau, j.target, j.willMiss, j.belowPeers, j.slower)
}

// those returns the verdicts of some rules that are true now.
func (j *Judge) those(rules ...func() (Verdict, bool)) []Verdict {
	var all []Verdict
	for _, rule := range rules {
		v, ok := rule()
		if !ok {
			continue
		}
		v.Step = j.step
		v.Confidence = math.Round(100*v.Confidence) / 100
		v.Sure = v.Confidence >= Sure
		if v.Saves == nil && v.Kind != Slower {
			if left, ok := j.left(); ok {
				v.Saves = &left
			}
		}
		all = append(all, v)
		if v.Kind == NotFinite || v.Kind == Diverged {
			break // the other verdicts mean nothing then
		}
	}
	return all
}

// left returns the GPU-hours until the planned end, if the run goes on as fast as so far. ok is false if the
// end is not known.
func (j *Judge) left() (hours float64, ok bool) {
	if j.setup.Total <= j.step || j.step <= j.first {
		return 0, j.setup.Total > 0 && j.step >= j.setup.Total
	}
	each := (j.gpu - j.began) / float64(j.step-j.first)
	return each * float64(j.setup.Total-j.step) / 3600, true
}

// length returns the number of planned steps, or of steps so far if the plan is not known.
func (j *Judge) length() float64 { return float64(max(j.setup.Total, j.step)) }
