package judge

import (
	"math"
	"slices"
)

const (
	// ordinary is the highest confidence of a Diverged without strong evidence. In many healthy runs, losses
	// rise and stay high: if the task becomes harder or changes, if a part of the loss gets more weight, in
	// reinforcement learning, with GANs and variational models, in a warm-up, and if the job prints a sum.
	ordinary = 0.85
	// A loss without a validation has certainly diverged if it is this many times as high as it ever was before,
	// still rises, and has become so high in less time than it had fallen.
	tenfold = 10
	// A loss without a validation has certainly diverged if it is this many times as high as it ever was before.
	// If it has never fallen, it must also be ten times as high as a sum of all losses.
	thousandfold = 1000
	// A validation metric is worse than at first if it has fallen behind its first value by more than this share
	// of what it had gained before.
	worse = 0.05
	// A gradient has exploded if its norm is this many times as high as before the loss rose.
	exploded = 100
)

// rose describes a loss that has risen and stays high.
type rose struct {
	all     []point
	best    point
	since   int64   // the first step at which it was high
	now     float64 // its median since then
	early   float64 // the highest value before the lowest value
	learned bool    // it had fallen before
}

// doubt returns the highest confidence that a Diverged may have, and the reason. It returns 1 if the run has
// certainly lost what it had learned. This is so if the loss and the validation are worse than at first, if the
// loss is many times as high as ever before, or if the gradient has exploded.
func (j *Judge) doubt(r rose) (most float64, why string) {
	scale := max(math.Abs(r.early), r.early-r.best.value)
	grown := r.now - r.early
	validated := j.curves[Validation].n > 0 && j.loss() != &j.curves[Validation]
	switch {
	case j.setup.Indirect:
		return ordinary, "; in reinforcement learning and of GANs, the loss may rise while the model improves"
	case !r.learned:
		// A sum of losses is at most so many times the first value.
		sum := float64(r.all[len(r.all)-1].step-r.all[0].step) + 1
		if grown > thousandfold*scale && grown > tenfold*sum*scale {
			return 1, ""
		}
		return ordinary, "; it has hardly fallen before, so nothing that was learned is lost"
	case validated && j.validatedSince(r):
		if r.now >= r.early-0.1*(r.early-r.best.value) && j.lost(r) {
			return 1, ""
		}
		return ordinary, "; the validation has not become worse than at first"
	case grown >= (thousandfold-1)*scale, grown >= (tenfold-1)*scale && r.sudden(r.early+(tenfold-1)*scale), !validated && grown > 0 && j.explodes(r):
		return 1, ""
	}
	return ordinary, "; a harder task, or another weight of a part of the loss, may be the reason"
}

// lost reports whether the validation metric is now worse than it was at first.
func (j *Judge) lost(r rose) bool {
	all := upright(j.curves[Validation].points(), j.setup.Higher)
	late := since(all, r.since)
	if len(late) < 2 || len(all)-len(late) < 2 {
		return false
	}
	first := all[0].value
	return lowest(late[len(late)-2:]).value > first+worse*(first-lowest(all).value)
}

// sudden reports whether the loss still rises, and has reached a value in less time than it had fallen before.
func (r rose) sudden(value float64) bool {
	high := since(r.all, r.since-1)
	i := slices.IndexFunc(high, func(p point) bool { return p.value >= value })
	third := len(high) / 3
	return i >= 0 && high[i].step-r.since <= r.since-r.all[0].step && third > 0 && median(high[2*third:]) > 1.1*median(high[third:2*third])
}

// validatedSince reports whether there is a validation after the loss has risen.
func (j *Judge) validatedSince(r rose) bool {
	return len(since(j.curves[Validation].points(), r.since)) > 0
}

// explodes reports whether the norm of the gradient is far higher than before the loss rose.
func (j *Judge) explodes(r rose) bool {
	all := j.curves[GradNorm].points()
	late := since(all, r.since)
	before := all[:len(all)-len(late)]
	return len(late) >= badRow && len(before) >= badRow && median(late) > exploded*median(before)
}

// highest returns the highest value of some points.
func highest(parts ...[]point) float64 {
	high := math.Inf(-1)
	for _, part := range parts {
		for _, p := range part {
			high = max(high, p.value)
		}
	}
	return high
}
