package judge

import (
	"fmt"
	"math"
	"slices"
)

const (
	// A metric improves if it becomes better by at least this share.
	gain = 0.001
	// A plateau has no improvement in the last part of the GPU time so far; look is the share of that part.
	look = 0.3
	// A plateau is sure only if the metric cannot become better by this share until the end.
	worth = 0.01
	// Among some hundred values, one may be better than its neighbours by chance, by this many standard
	// deviations of the noise.
	lucky = 3
	// Two learning rates are equal if they differ by less than this share.
	settledRate = 0.02
)

// warmUp returns the step at which the learning rate first came close to its highest value, and whether the
// rate is still rising.
func (j *Judge) warmUp() (end int64, rising bool) {
	all := j.curves[Rate].points()
	if len(all) == 0 {
		return 0, false
	}
	high := slices.MaxFunc(all, func(a, b point) int { return cmpValue(a, b) }).value
	for _, p := range all {
		if p.value >= 0.95*high {
			end = p.step
			break
		}
	}
	newest := all[len(all)-1]
	return end, len(all) > 1 && newest.value >= high && all[len(all)-2].value < newest.value && all[0].value < 0.95*high
}

func cmpValue(a, b point) int {
	switch {
	case a.value < b.value:
		return -1
	case a.value > b.value:
		return 1
	}
	return 0
}

// changed returns the last step at which the learning rate was not the present one.
func (j *Judge) changed() int64 {
	all := j.curves[Rate].points()
	for i := len(all) - 1; i >= 0; i-- {
		if now := all[len(all)-1].value; math.Abs(all[i].value-now) > settledRate*math.Abs(now) {
			return all[i].step
		}
	}
	return -1
}

// plateau finds a metric that no longer improves.
func (j *Judge) plateau() (Verdict, bool) {
	s, higher := j.judged()
	least := 18
	if s == &j.curves[Train] {
		least = 60
	}
	spent := j.gpu - j.began
	if s.n < least || spent <= 0 || float64(j.step-j.first) < 0.1*j.length() {
		return Verdict{}, false
	}
	if _, rising := j.warmUp(); rising {
		return Verdict{}, false
	}
	all := upright(s.points(), higher)
	late := sinceGPU(all, j.gpu-look*spent)
	if len(late) < least/3 || len(late) > len(all)-least/3 || j.changed() >= late[0].step {
		return Verdict{}, false
	}
	settled := j.setup.Settled
	if settled != nil && *settled > late[0].step {
		return Verdict{}, false
	}
	parts := blocks(all, 20)
	recent := sinceGPU(parts, late[0].gpu)
	if len(recent) < 2 || len(parts)-len(recent) < 2 {
		return Verdict{}, false
	}
	before, now := lowest(parts[:len(parts)-len(recent)]), lowest(recent)
	scale := math.Abs(before.value)
	if before.value-now.value >= gain*scale {
		return Verdict{}, false
	}
	more, half := j.more(late), all[len(all)/2:]
	confidence := 0.95
	why := ""
	switch {
	case more > worth*scale:
		confidence = 0.75
		why = "; it may still improve by more than half, as uneven as it is"
		if more < scale/2 {
			why = fmt.Sprintf("; it may still improve by %.1f %%", 100*more/scale)
		}
	case before.value-(median(late)-lucky*max(noise(half), slope(half).noise)) > worth*scale:
		confidence = 0.8
		why = "; its noise alone may bring a better value"
	case settled == nil:
		confidence = 0.6
		why = "; the learning rate may still fall"
	}
	return Verdict{Kind: Plateau, Since: late[0].step, Confidence: confidence,
		Sentence: fmt.Sprintf("the best value is %s, of step %d; the last %.0f %% of the GPU time have improved it by less than %.1f %%%s",
			j.value(min(before.value, now.value)), bestOf(before, now).step, 100*look, 100*gain, why)}, true
}

// more returns how much a metric may still fall until the planned end. If the end is not known, it returns how
// much the metric may fall in a time as long as that of late. It assumes that the metric falls as fast as in
// late, plus two standard deviations.
func (j *Judge) more(late []point) float64 {
	line, times := slope(late), 1.0
	if j.setup.Total > j.step {
		times = float64(j.setup.Total-j.step) / float64(max(1, j.step-late[0].step))
	}
	return times * (line.gain + 2*line.doubt)
}

func bestOf(a, b point) point {
	if b.value < a.value {
		return b
	}
	return a
}

// value writes a value of the judged metric. v comes from upright.
func (j *Judge) value(v float64) string {
	if _, higher := j.judged(); higher {
		v = -v
	}
	return short(v)
}

// target finds a metric that has reached its target.
func (j *Judge) target() (Verdict, bool) {
	if j.setup.Target == nil {
		return Verdict{}, false
	}
	s, higher := j.judged()
	all, want, confidence := upright(s.points(), higher), *j.setup.Target, 0.97
	if higher {
		want = -want
	}
	if s == &j.curves[Train] {
		if len(all) < 5 {
			return Verdict{}, false
		}
		all, confidence = smooth(all)[2:], 0.92
	}
	for _, p := range all {
		if p.value <= want {
			return Verdict{Kind: Reached, Since: p.step, Confidence: confidence,
				Sentence: fmt.Sprintf("the target of %s was reached at step %d, with %s", short(*j.setup.Target), p.step, j.value(p.value))}, true
		}
	}
	return Verdict{}, false
}

// willMiss finds a metric that, by its extrapolation, does not reach the target by the planned end.
func (j *Judge) willMiss() (Verdict, bool) {
	s, higher := j.judged()
	if j.setup.Target == nil || s.n < 20 || j.setup.Total <= j.step || float64(j.step-j.first) < 0.25*j.length() {
		return Verdict{}, false
	}
	from, rising := j.warmUp()
	if rising {
		return Verdict{}, false
	}
	all, want := since(upright(s.points(), higher), from), *j.setup.Target
	if higher {
		want = -want
	}
	if len(all) < 15 || lowest(all).value <= want {
		return Verdict{}, false
	}
	end, doubt := extrapolate(all, j.setup.Total)
	if end-2*doubt <= want {
		return Verdict{}, false
	}
	confidence := 0.95 - 0.35*math.Exp(-((end-want)/doubt-2)/3)
	if float64(j.step-j.first) < 0.5*j.length() {
		confidence = min(confidence, 0.85)
	}
	if j.setup.Settled == nil || *j.setup.Settled > all[len(all)/2].step || j.changed() > all[len(all)/2].step {
		confidence = min(confidence, 0.6) // the metric may improve when the learning rate falls
	}
	return Verdict{Kind: WillMiss, Since: all[0].step, Confidence: confidence,
		Sentence: fmt.Sprintf("at step %d the value will be about %s, give or take %s; the target is %s",
			j.setup.Total, j.value(end), short(doubt), short(*j.setup.Target))}, true
}

// belowPeers compares the best value with the median of the means of earlier runs until the same step, as the
// median rule of Google Vizier does.
func (j *Judge) belowPeers() (Verdict, bool) {
	s, higher := j.judged()
	if s.n < 3 || float64(j.step-j.first) < 0.1*j.length() {
		return Verdict{}, false
	}
	all := upright(s.points(), higher)
	last := all[len(all)-1].step
	var means []float64
	for _, t := range j.setup.Earlier {
		if mean, ok := t.mean(last); ok {
			if higher {
				mean = -mean
			}
			means = append(means, mean)
		}
	}
	if len(means) < 3 {
		return Verdict{}, false
	}
	n, best := len(means), lowest(all).value
	middle := quantile(means, 0.5)
	if best <= middle {
		return Verdict{}, false
	}
	return Verdict{Kind: BelowPeers, Since: last, Confidence: min(0.8, 0.5+0.05*float64(n)),
		Sentence: fmt.Sprintf("the best value by step %d is %s; the median of the means of %d earlier runs until this step is %s",
			last, j.value(best), n, j.value(middle))}, true
}

// Trace has the values of the judged metric in an earlier run, in the order of the steps.
type Trace []TracePoint

// TracePoint is a value of a Trace.
type TracePoint struct {
	Step  int64   `json:"step"`
	Value float64 `json:"value"`
}

// mean returns the mean of the values until a step. ok is false if the run ended before that step.
func (t Trace) mean(until int64) (mean float64, ok bool) {
	if len(t) == 0 || t[len(t)-1].Step < until {
		return 0, false
	}
	n := 0.0
	for _, p := range t {
		if p.Step > until {
			break
		}
		n++
		mean += (p.Value - mean) / n
	}
	return mean, n > 0
}
