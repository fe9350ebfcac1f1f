package judge

import (
	"fmt"
	"math"
)

// trend is a straight line that was fitted to a part of a curve.
type trend struct {
	gain  float64 // by how much the line falls from the first point to the last
	noise float64 // standard deviation of the points from the line
	doubt float64 // standard deviation of gain; it is twice that of an ordinary fit, because neighbouring points are similar
}

func slope(all []point) trend {
	n := float64(len(all))
	if n < 3 {
		return trend{}
	}
	var mx, my float64
	for _, p := range all {
		mx, my = mx+float64(p.step)/n, my+p.value/n
	}
	var xx, xy, yy float64
	for _, p := range all {
		x, y := float64(p.step)-mx, p.value-my
		xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
	}
	if xx == 0 {
		return trend{}
	}
	b := xy / xx
	left := max(0, yy-b*xy) / (n - 2)
	span := float64(all[len(all)-1].step - all[0].step)
	return trend{gain: -b * span, noise: math.Sqrt(left), doubt: 2 * math.Sqrt(left/xx) * span}
}

// extrapolate returns the value that a falling curve will have at a later step, and its standard deviation.
// It fits power laws with several exponents, and a logarithm, to the whole curve and to its second half. Fits
// with smaller residuals get more weight.
func extrapolate(all []point, step int64) (end, doubt float64) {
	parts := blocks(all, 30)
	whole, spread := powers(parts, all[0].step, step)
	half, spreadHalf := powers(parts[len(parts)/2:], all[0].step, step)
	return (whole + half) / 2, math.Sqrt(max(spread, spreadHalf)) + math.Abs(whole-half)
}

// powers returns the weighted mean of all fits at a step, and its variance.
func powers(parts []point, first, step int64) (mean, variance float64) {
	type fit struct{ at, left float64 }
	var fits []fit
	best := math.Inf(1)
	for _, c := range []float64{0, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5} {
		of := func(s int64) float64 {
			x := float64(s-first) + 1
			if c == 0 {
				return -math.Log(x)
			}
			return math.Pow(x, -c)
		}
		var mx, my, xx, xy, yy float64
		n := float64(len(parts))
		for _, p := range parts {
			mx, my = mx+of(p.step)/n, my+p.value/n
		}
		for _, p := range parts {
			x, y := of(p.step)-mx, p.value-my
			xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
		}
		if xx == 0 {
			continue
		}
		left := max(0, yy-xy*xy/xx)
		fits = append(fits, fit{my + xy/xx*(of(step)-mx), left})
		best = min(best, left)
	}
	if len(fits) == 0 {
		return parts[len(parts)-1].value, 0
	}
	noise := max(best/float64(max(1, len(parts)-3)), 1e-12*math.Abs(mean)+math.SmallestNonzeroFloat64)
	var sum float64
	for _, f := range fits {
		w := math.Exp(-(f.left - best) / noise / 2)
		sum += w
		mean += w * f.at
	}
	mean /= sum
	for _, f := range fits {
		w := math.Exp(-(f.left-best)/noise/2) / sum
		variance += w * (f.at - mean) * (f.at - mean)
	}
	return mean, variance + noise
}

const (
	// A run has become slower if its throughput is below this share of the earlier one.
	fell = 0.8
	// paces is the least number of values of the throughput.
	paces = 40
	// A fall must last for this share of the run so far, and for so many steps.
	slowShare = 0.15
	slowSteps = 30
)

// slower finds a throughput that has fallen and stays low. If the run reports no throughput, slower uses its
// steps per GPU-second.
func (j *Judge) slower() (Verdict, bool) {
	all := j.curves[Throughput].points()
	if len(all) == 0 {
		all = pace(j.curves[Train].points())
	}
	if len(all) < paces {
		return Verdict{}, false
	}
	parts := blocks(all, 20)
	usual := quantile(values(parts), 0.7)
	low := len(parts)
	for low > 0 && parts[low-1].value < fell*usual {
		low--
	}
	lasts := len(parts) - low
	if lasts < 3 || low < 4 || usual <= 0 {
		return Verdict{}, false
	}
	steps := j.step - parts[low-1].step
	now := median(since(all, parts[low-1].step))
	if steps < slowSteps || float64(steps) < slowShare*float64(j.step-j.first) || now >= fell*usual {
		return Verdict{}, false
	}
	v := Verdict{Kind: Slower, Since: parts[low-1].step, Confidence: min(0.85, 0.5+0.07*float64(lasts)),
		Sentence: fmt.Sprintf("the throughput has fallen by %.0f %% at about step %d, and has stayed low", 100*(1-now/usual), parts[low-1].step)}
	if left, ok := j.left(); ok {
		cost := left * (1 - now/usual)
		v.Saves = &cost
	}
	return v, true
}

// pace returns the steps per GPU-second between neighbouring points of a curve.
func pace(all []point) []point {
	var out []point
	for i := 1; i < len(all); i++ {
		if spent := all[i].gpu - all[i-1].gpu; spent > 0 {
			out = append(out, point{all[i].step, all[i].gpu, float64(all[i].step-all[i-1].step) / spent})
		}
	}
	return out
}
