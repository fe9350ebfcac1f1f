package judge

import (
	"math"
	"slices"
)

// point is a value at a step. gpu is the GPU-seconds that the run had used by then.
type point struct {
	step  int64
	gpu   float64
	value float64
}

const (
	maxRecent  = 256 // number of values that are kept as they came
	maxBuckets = 192 // number of means of older values
)

// series is a curve in bounded memory. It has the latest values as they came, and means of the older ones.
// The more values there are, the more values each mean covers.
type series struct {
	old    []point // means; step and gpu are those of the last value of each mean
	per    int     // values in each mean
	filled int     // values in the last mean, up to per
	recent []point
	n      int // number of all values
}

func (s *series) newest() point { return s.recent[len(s.recent)-1] }

func (s *series) add(p point) {
	s.n++
	s.recent = append(s.recent, p)
	if len(s.recent) < 2*maxRecent {
		return
	}
	for _, p := range s.recent[:maxRecent] {
		s.age(p)
	}
	s.recent = append(s.recent[:0], s.recent[maxRecent:]...)
}

// age adds a value to the means.
func (s *series) age(p point) {
	if s.per == 0 {
		s.per = 4
	}
	if len(s.old) == 0 || s.filled == s.per {
		if len(s.old) == maxBuckets {
			for i := range maxBuckets / 2 {
				a, b := s.old[2*i], s.old[2*i+1]
				s.old[i] = point{b.step, b.gpu, (a.value + b.value) / 2}
			}
			s.old, s.per = s.old[:maxBuckets/2], 2*s.per
		}
		s.old, s.filled = append(s.old, p), 1
		return
	}
	last := &s.old[len(s.old)-1]
	s.filled++
	last.value += (p.value - last.value) / float64(s.filled)
	last.step, last.gpu = p.step, p.gpu
}

// cut removes the points from a step on.
func (s *series) cut(step int64) {
	keep := func(all []point) []point {
		i, _ := slices.BinarySearchFunc(all, step, func(p point, step int64) int {
			if p.step < step {
				return -1
			}
			return 1
		})
		return all[:i]
	}
	s.old, s.recent = keep(s.old), keep(s.recent)
	if len(s.recent) == 0 && len(s.old) > 0 {
		s.recent = append(s.recent, s.old[len(s.old)-1])
		s.old = s.old[:len(s.old)-1]
	}
	s.filled = s.per
	if s.n = len(s.recent); s.n > 0 {
		s.n += s.per * len(s.old)
	}
}

// points returns the points of the curve in order. The caller must not change them.
func (s *series) points() []point {
	if len(s.old) == 0 {
		return s.recent
	}
	return append(slices.Clip(s.old), s.recent...)
}

// since returns the points of all after a step.
func since(all []point, step int64) []point {
	i := len(all)
	for i > 0 && all[i-1].step > step {
		i--
	}
	return all[i:]
}

// sinceGPU returns the points of all that were reported after that many GPU-seconds.
func sinceGPU(all []point, gpu float64) []point {
	i := len(all)
	for i > 0 && all[i-1].gpu > gpu {
		i--
	}
	return all[i:]
}

func values(all []point) []float64 {
	out := make([]float64, len(all))
	for i, p := range all {
		out[i] = p.value
	}
	return out
}

// quantile sorts values and returns a quantile of them. There must be at least one value.
func quantile(of []float64, q float64) float64 {
	slices.Sort(of)
	return of[min(len(of)-1, int(q*float64(len(of))))]
}

func median(all []point) float64 { return quantile(values(all), 0.5) }

// noise returns the standard deviation of the values of a curve around its course. It is computed from the
// differences of neighbours, and outliers hardly change it.
func noise(all []point) float64 {
	if len(all) < 3 {
		return 0
	}
	steps := make([]float64, 0, len(all)-1)
	for i := 1; i < len(all); i++ {
		steps = append(steps, math.Abs(all[i].value-all[i-1].value))
	}
	return quantile(steps, 0.5) / 0.6745 / math.Sqrt2
}

// blocks divides a curve into n parts of equally many steps. It returns a point for each part: the median of
// its values, with the step and GPU time of its last point. It omits parts without points.
func blocks(all []point, n int) []point {
	if len(all) == 0 {
		return nil
	}
	first, span := all[0].step, float64(all[len(all)-1].step-all[0].step)
	out := make([]point, 0, n)
	for from := 0; from < len(all); {
		part := int(float64(all[from].step-first) / max(1, span) * float64(n))
		end := from + 1
		for end < len(all) && int(float64(all[end].step-first)/max(1, span)*float64(n)) == part {
			end++
		}
		last := all[end-1]
		if part == n && len(out) > 0 { // this is the last point of the curve
			out[len(out)-1].step, out[len(out)-1].gpu = last.step, last.gpu
		} else {
			out = append(out, point{last.step, last.gpu, median(all[from:end])})
		}
		from = end
	}
	return out
}

// smooth replaces each value by the median of five: the value and its neighbours.
func smooth(all []point) []point {
	out := make([]point, len(all))
	var near [5]float64
	for i, p := range all {
		n := 0
		for _, q := range all[max(0, i-2):min(len(all), i+3)] {
			at := n
			for ; at > 0 && near[at-1] > q.value; at-- {
				near[at] = near[at-1]
			}
			near[at] = q.value
			n++
		}
		out[i] = point{p.step, p.gpu, near[n/2]}
	}
	return out
}

// lowest returns the point with the lowest value.
func lowest(all []point) point {
	return slices.MinFunc(all, func(a, b point) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
}

// upright returns a curve for which lower values are better.
func upright(all []point, higher bool) []point {
	if !higher {
		return all
	}
	out := make([]point, len(all))
	for i, p := range all {
		out[i] = point{p.step, p.gpu, -p.value}
	}
	return out
}
