// Package judge says of the curves of a training run whether the run is worth going on with. It is pure and
// online: values come in as the job reports them, with the step and the GPU time at which it did; no clock is
// read. docs/curves.md has the rules, and how often they are right.
package judge

import "math"

// Kind is what a verdict says.
type Kind string

// The verdicts.
const (
	NotFinite  Kind = "not-finite"  // the loss is NaN or infinite, several times in a row
	Diverged   Kind = "diverged"    // the loss has risen, and stays high
	Flat       Kind = "flat"        // the loss has never fallen
	Plateau    Kind = "plateau"     // the metric no longer improves
	Reached    Kind = "reached"     // the target is reached
	WillMiss   Kind = "will-miss"   // the target will not be reached by the end
	BelowPeers Kind = "below-peers" // worse than earlier runs of the same job at the same step
	Slower     Kind = "slower"      // the throughput has fallen
)

// Kinds lists the verdicts, in the order in which Verdicts returns them.
var Kinds = []Kind{NotFinite, Diverged, Flat, Plateau, Reached, WillMiss, BelowPeers, Slower}

// Sure is the confidence from which a verdict may end a run, if its user wants that. Below, it is advice.
const Sure = 0.9

// Verdict is something that is true of a run now. A later one may be without it.
type Verdict struct {
	Kind       Kind    `json:"kind"`
	Since      int64   `json:"since"` // the step from which it has been true
	Step       int64   `json:"step"`  // the step at which it was found
	Sentence   string  `json:"sentence"`
	Confidence float64 `json:"confidence"` // from 0 to 1
	Sure       bool    `json:"sure"`       // Confidence is at least Sure
	// Saves is the GPU time in hours from now to the planned end of the run; nil if that is not known. Of
	// Slower, it is what the lower throughput costs until the end.
	Saves *float64 `json:"saves_gpu_hours"`
}

// Signal is what a value is of.
type Signal uint8

// The signals of a run.
const (
	Train      Signal = iota // training loss; lower is better
	Validation               // the metric by which the run is judged, on other data
	Rate                     // learning rate
	GradNorm                 // norm of the gradient
	LossScale                // of mixed precision
	Skipped                  // steps skipped so far, as mixed precision does
	Throughput               // work per time, in any unit
	signals
)

// Setup is what is known of a run beforehand. The zero Setup is a run of which nothing is known.
type Setup struct {
	Higher bool  // higher values of Validation are better
	Total  int64 // planned steps; 0 if not known
	// Settled is the step from which the learning rate no longer falls, as the user has said or an earlier
	// run has shown: 0 for a constant rate. It is nil if that is not known; then no plateau is certain.
	Settled *int64
	Target  *float64 // of Validation, or of Train if there is no Validation
	Earlier []Trace  // earlier runs of the same job that ended well
}

// Judge has the curves of one run. Its memory is bounded.
type Judge struct {
	setup   Setup
	curves  [signals]series
	step    int64   // the highest one
	gpu     float64 // GPU-seconds so far
	first   int64   // the first step
	began   float64 // GPU-seconds at first
	begun   bool
	bad     streak // values in a row that are not finite
	scaling int    // values of LossScale that were lower than the one before
}

// streak counts values that are not finite.
type streak struct {
	n        int
	since    int64
	of       Signal
	finite   bool // a finite value came before
	lowering bool // the loss scale was falling meanwhile
}

// New returns a Judge of a run.
func New(s Setup) *Judge { return &Judge{setup: s} }

// Add takes the next value of a signal: at a step, when the run had used gpu GPU-seconds. A step that comes
// again, as after a restart from a checkpoint, replaces what was known from that step on.
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
			j.step, j.bad.n = step, 0 // the run was resumed from an earlier step
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
			return // the training loss tells
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

// judged returns the curve of the metric by which the run is judged, and whether higher is better.
func (j *Judge) judged() (*series, bool) {
	if j.curves[Validation].n > 0 {
		return &j.curves[Validation], j.setup.Higher
	}
	return &j.curves[Train], false
}

// Verdicts returns what is true of the run now.
func (j *Judge) Verdicts() []Verdict {
	return j.those(j.finite, j.diverged, j.flat, j.plateau, j.target, j.willMiss, j.belowPeers, j.slower)
}

// those returns what is true by some rules.
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
			break // nothing else matters
		}
	}
	return all
}

// left returns the GPU-hours until the planned end, at the pace so far.
func (j *Judge) left() (hours float64, ok bool) {
	if j.setup.Total <= j.step || j.step <= j.first {
		return 0, j.setup.Total > 0 && j.step >= j.setup.Total
	}
	each := (j.gpu - j.began) / float64(j.step-j.first)
	return each * float64(j.setup.Total-j.step) / 3600, true
}

// length is how many steps the run has: planned, or else so far.
func (j *Judge) length() float64 { return float64(max(j.setup.Total, j.step)) }
