package curveview

import (
	"slices"

	"github.com/gangrun/gangrun/internal/curve/judge"
)

// looks is about how often a replay asks a Judge for its verdicts. While a job runs, gangrun asks after each value.
const looks = 400

// value is a value of a signal, in the form in which a Judge gets it.
type value struct {
	of judge.Signal
	point
}

// judge adds the values of the curves to a Judge in the order in which the job reported them.
func (r *Report) judge(setup judge.Setup, c chosen, o Options) {
	var all []value
	for of, s := range c.by {
		for _, p := range s.points {
			all = append(all, value{of, p})
		}
	}
	slices.SortFunc(all, func(a, b value) int {
		if a.step != b.step {
			return int(max(-1, min(1, a.step-b.step)))
		}
		return int(b.of) - int(a.of) // so that the learning rate comes before the loss
	})
	spent, real := clock(all, o)
	j := judge.New(setup)
	seen := map[judge.Kind]bool{}
	sure := map[judge.Kind]bool{}
	every := max(1, len(all)/looks)
	for i, v := range all {
		j.Add(v.of, v.step, spent(v.point), v.value)
		if i%every != 0 && i != len(all)-1 {
			continue
		}
		now := j.Verdicts()
		for k := range now {
			if !real {
				now[k].Saves = nil
			}
			if kind := now[k].Kind; !seen[kind] || now[k].Sure && !sure[kind] {
				seen[kind], sure[kind] = true, sure[kind] || now[k].Sure
				r.History = append(r.History, now[k])
			}
		}
		if i == len(all)-1 && now != nil {
			r.Verdicts = now
		}
	}
}

// clock returns a function that returns the GPU-seconds at a point, and whether these are real. If the files
// have no times, the time of the run is distributed evenly over its steps. If that is not known either, each
// step counts as one second.
func clock(all []value, o Options) (spent func(point) float64, real bool) {
	gpus := o.GPUs
	if gpus <= 0 {
		gpus = 1
	}
	begun, timed := 0.0, 0
	for _, v := range all {
		if v.time > 0 {
			if timed == 0 || v.time < begun {
				begun = v.time
			}
			timed++
		}
	}
	if timed > 0 && timed == len(all) {
		return func(p point) float64 { return gpus * (p.time - begun) }, true
	}
	var last int64
	for _, v := range all {
		last = max(last, v.step)
	}
	if o.Seconds > 0 && last > 0 {
		return func(p point) float64 { return gpus * o.Seconds * float64(p.step) / float64(last) }, true
	}
	return func(p point) float64 { return float64(p.step) }, false
}
