package judge

import (
	"fmt"
	"math"
)

const (
	// badRow is how many values in a row must not be finite. With a dynamic loss scale, some such values are
	// normal while the scale is too high: at the start of a run, and while the scale falls.
	badRow       = 5
	badRowScaled = 25
	// A rise of the loss must last for this share of the run, and for minWindow steps. The verdict is sure
	// only after a multiple of that.
	window    = 0.02
	minWindow = 50
	// rise is the share of its former fall that the loss must have risen again. A sure verdict needs
	// steepRise.
	rise      = 0.3
	steepRise = 0.6
	// A rise must exceed this many standard deviations of the noise.
	outOfNoise = 8
)

// finite finds a loss that was NaN or infinite several times in a row.
func (j *Judge) finite() (Verdict, bool) {
	need := badRow
	scaled := j.curves[LossScale].n > 0 || j.curves[Skipped].n > 0
	if scaled && (!j.bad.finite || j.bad.lowering || float64(j.bad.since) < 0.01*j.length()) {
		need = badRowScaled
	}
	if j.bad.n < need {
		return Verdict{}, false
	}
	name := "the loss"
	if j.bad.of == Validation {
		name = "the validation metric"
	}
	confidence := 0.99
	if j.bad.of == Validation && (j.curves[Train].n > 0 || j.setup.Higher) {
		confidence = 0.7 // the loss may be finite
	}
	return Verdict{Kind: NotFinite, Since: j.bad.since, Confidence: confidence,
		Sentence: fmt.Sprintf("%s has been NaN or infinite since step %d, %d values in a row", name, j.bad.since, j.bad.n)}, true
}

// loss returns the curve of the training loss. If there is none, it returns that of the validation loss.
func (j *Judge) loss() *series {
	if j.curves[Train].n == 0 && !j.setup.Higher {
		return &j.curves[Validation]
	}
	return &j.curves[Train]
}

// diverged finds a loss that has risen above its lowest value and stays high. A loss that falls again has not
// diverged, however high it is.
func (j *Judge) diverged() (Verdict, bool) {
	all := j.loss().points()
	if len(all) < 10 {
		return Verdict{}, false
	}
	even := smooth(all)
	best := lowest(even)
	at := 0
	for even[at].step < best.step {
		at++
	}
	spread := noise(all[:max(at+1, min(len(all), 20))])
	start := median(even[:min(len(even), max(5, at/20))])
	gained := start - best.value
	learned := gained >= 4*spread && gained >= 0.05*math.Abs(best.value)
	if !learned {
		gained = max(gained, math.Abs(best.value)) // the loss has hardly fallen before it rose
	}
	least := max(outOfNoise*spread, 0.05*math.Abs(best.value))
	limit, steep := best.value+max(least, rise*gained), best.value+max(least, steepRise*gained)
	from := at
	for i := at; i < len(even); i++ {
		if even[i].value <= limit {
			from = i
		}
	}
	high := all[from+1:]
	held := float64(all[len(all)-1].step - all[from].step)
	span := max(minWindow, window*j.length())
	if len(high) < badRow || held < span || falls(high, best.value) {
		return Verdict{}, false
	}
	now := median(high[len(high)/2:])
	confidence := min(0.99, 1-0.4*span/held)
	if now < steep {
		confidence = min(confidence, 0.85)
	}
	most, why := j.doubt(rose{all: all, best: best, since: high[0].step, now: now, learned: learned, early: highest(even[:at+1], all[:min(3, len(all))])})
	return Verdict{Kind: Diverged, Since: high[0].step, Confidence: min(confidence, most),
		Sentence: fmt.Sprintf("the loss has risen from %s at step %d to %s, and has stayed above %s for %.0f steps%s",
			short(best.value), best.step, short(now), short(limit), held, why)}, true
}

// falls reports whether a high loss falls again.
func falls(high []point, best float64) bool {
	n := len(high)
	if n < 6 {
		return high[n-1].value < high[0].value
	}
	before, now := median(high[n/3:2*n/3]), median(high[2*n/3:])
	return now < before-0.03*(before-best)
}

// flat finds a loss that has never fallen.
func (j *Judge) flat() (Verdict, bool) {
	all := j.loss().points()
	if from, warming := j.warmUp(); warming {
		return Verdict{}, false
	} else if from > 0 && len(all) > 0 {
		all = append(all[:min(3, len(all)):min(3, len(all))], since(all, max(from, all[min(2, len(all)-1)].step))...)
	}
	share := float64(j.step-j.first) / j.length()
	if len(all) < 21 || j.step-j.first < minWindow || share < 0.05 {
		return Verdict{}, false
	}
	third := len(all) / 3
	spread := noise(all)
	begun, now := median(all[:third]), median(all[len(all)-third:])
	sure := 2 * 1.25 * spread * math.Sqrt(2/float64(third))
	if line := slope(all); math.Abs(begun-now) > max(sure, 0.001*math.Abs(begun)) || math.Abs(line.gain) > max(2*line.doubt, 0.001*math.Abs(begun)) {
		return Verdict{}, false
	}
	if all[0].value-now > max(3*spread, 0.005*math.Abs(now)) || j.improved() {
		return Verdict{}, false
	}
	if lowest(smooth(all)).value < begun-max(4*spread, 0.002*math.Abs(begun)) {
		return Verdict{}, false
	}
	confidence := min(0.85, 0.55+share) // some networks start to learn late
	if j.setup.Total == 0 {
		confidence = min(0.8, 0.55+float64(len(all))/2000)
	}
	why := ""
	if norms := j.curves[GradNorm]; norms.n >= badRow && quantile(values(norms.points()), 0.99) < 1e-7 {
		confidence, why = 0.97, "; the gradient is zero"
	}
	return Verdict{Kind: Flat, Since: j.first, Confidence: confidence,
		Sentence: fmt.Sprintf("the loss has been %s from the beginning, for %d steps%s", short(now), j.step-j.first, why)}, true
}

// improved reports whether the validation metric is better than its first value.
func (j *Judge) improved() bool {
	all := upright(j.curves[Validation].points(), j.setup.Higher)
	if len(all) < 4 {
		return false
	}
	spread := max(3*noise(all), 0.005*math.Abs(all[0].value))
	return median(all[len(all)/2:]) < all[0].value-spread
}

// short writes a value with four significant digits.
func short(v float64) string { return fmt.Sprintf("%.4g", v) }
