//go:build !race

package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// stops is what a rule would have done to runs.
type stops struct {
	runs, stopped int
	far, wrong    int     // stopped more than 0.1 % and 1 % before the best value of the whole run
	spent, saved  float64 // seconds of all runs; of those saved
	savedNear     float64 // of them, by stops that are at most 0.1 % away
	wrongOnes     []string
	distances     []float64
}

// add counts a run that a rule has stopped at a step; -1 is one that it has not.
func (s *stops) add(r *training, h hindsight, step int64) {
	s.runs++
	s.spent += r.seconds
	if step < 0 {
		return
	}
	s.stopped++
	saved := r.seconds - r.gpu(step)
	s.saved += saved
	off := h.regret(step)
	distance := h.distance(step)
	s.distances = append(s.distances, distance)
	if distance > 0.001 {
		s.far++
	} else {
		s.savedNear += saved
	}
	if off > 0.01 {
		s.wrong++
		s.wrongOnes = append(s.wrongOnes, fmt.Sprintf("%s at step %d: %.2f %%", r.name, step, 100*off))
	}
}

func (s *stops) row(name string) string {
	middle := "-"
	if len(s.distances) > 0 {
		middle = fmt.Sprintf("%.3f %%", 100*quantile(slices.Clone(s.distances), 0.5))
	}
	return fmt.Sprintf("| %s | %d of %d | %.0f %% | %.0f %% | %d | %d | %s |\n", name, s.stopped, s.runs, 100*s.saved/s.spent, 100*s.savedNear/s.spent, s.far, s.wrong, middle)
}

// patience is the rule of Lightning and Keras: stop after so many checks without a better value. Lightning
// counts a check as one without from the first; Keras with patience 0 as 1.
func patience(h hindsight, wait int) int64 {
	best, without := math.Inf(1), 0
	for _, p := range h.checks {
		if p.value < best {
			best, without = p.value, 0
			continue
		}
		if without++; without >= max(1, wait) {
			return p.step
		}
	}
	return -1
}

// earliest is the first check after which nothing within 0.1 % of the best could be gained: what no rule can
// know.
func earliest(h hindsight) int64 {
	for _, p := range h.checks {
		if h.regret(p.step) <= 0.001 {
			return p.step
		}
	}
	return -1
}

// peers returns the other runs of the same data and model as traces.
func peers(r *training, all []training) (traces []Trace, best []float64) {
	for i := range all {
		o := &all[i]
		h := o.hindsight()
		if o.name == r.name || o.set != r.set || o.model != r.model || h.diverged || h.flat || strings.HasPrefix(o.kind, "stuck") {
			continue
		}
		var t Trace
		for _, p := range h.checks {
			t = append(t, TracePoint{p.step, p.value})
		}
		traces, best = append(traces, t), append(best, h.best)
	}
	return traces, best
}

// healthy reports whether a run is one that a user would want to go to its plateau.
func healthy(r *training, h hindsight) bool {
	return !h.diverged && !h.flat && !strings.HasPrefix(r.kind, "stuck") && !strings.HasPrefix(r.kind, "diverge") && len(h.checks) > 0
}

// tally counts how often a verdict is right.
type tally struct{ right, wrong, missed int }

func (c *tally) add(said, is bool) {
	switch {
	case said && is:
		c.right++
	case said:
		c.wrong++
	case is:
		c.missed++
	}
}

func (c tally) cell() string {
	share := func(n, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", float64(n)/float64(of))
	}
	return fmt.Sprintf("%s (%d of %d) | %s (%d of %d)", share(c.right, c.right+c.wrong), c.right, c.right+c.wrong, share(c.right, c.right+c.missed), c.right, c.right+c.missed)
}

// measured is what the verdicts do to a half of the corpus.
type measured struct {
	advice, sure      map[Kind]*tally
	ends              stops // by any verdict that is sure and needs no target, told how the learning rate goes
	untold            stops // the same, told nothing but the steps
	plateau           stops
	rules             map[string]*stops
	schedules, kinds  map[string]int
	settledRuns, runs int
}

// ruleNames are the rules beside which the plateau is measured, in order.
var ruleNames = []string{"Lightning: patience 3", "Keras: patience 0", "Hugging Face: patience 1", "patience 10", "median of earlier runs", "nobody knows before the end: the first check within 0.1 %"}

func measure(half, all []training) *measured {
	m := &measured{advice: map[Kind]*tally{}, sure: map[Kind]*tally{}, rules: map[string]*stops{}, schedules: map[string]int{}, kinds: map[string]int{}}
	for _, k := range Kinds {
		m.advice[k], m.sure[k] = &tally{}, &tally{}
	}
	for _, name := range ruleNames {
		m.rules[name] = &stops{}
	}
	for i := range half {
		r := &half[i]
		m.runs++
		m.schedules[r.schedule]++
		m.kinds[r.kind]++
		m.run(r, all)
	}
	return m
}

func (m *measured) run(r *training, all []training) {
	h := r.hindsight()
	settled := r.settled
	advice, sure := r.first(Setup{Total: r.steps, Settled: &settled})
	said := func(in map[Kind]Verdict, k Kind) bool { _, ok := in[k]; return ok }
	count := func(at map[Kind]*tally, in map[Kind]Verdict) {
		at[NotFinite].add(said(in, NotFinite), h.broken)
		at[Diverged].add(said(in, Diverged) || said(in, NotFinite), h.diverged)
		at[Flat].add(said(in, Flat), h.flat)
		if v, ok := in[Plateau]; healthy(r, h) {
			level := r.settled < r.steps*6/10 && h.regret(r.steps*7/10) < 0.001
			at[Plateau].add(ok, ok && h.regret(v.Step) <= 0.01 || !ok && level)
		}
	}
	count(m.advice, advice)
	count(m.sure, sure)
	first := func(in map[Kind]Verdict) int64 {
		step := int64(-1)
		for _, k := range []Kind{NotFinite, Diverged, Flat, Plateau} {
			if v, ok := in[k]; ok && (step < 0 || v.Step < step) {
				step = v.Step
			}
		}
		return step
	}
	m.ends.add(r, h, first(sure))
	_, untold := r.first(Setup{Total: r.steps})
	m.untold.add(r, h, first(untold))
	if healthy(r, h) {
		m.targets(r, h, settled)
		m.peers(r, h, all)
		if r.settled < r.steps/2 {
			m.settled(r, h, sure, all)
		}
	}
}

// targets asks for values that a run does reach, and for some that it does not.
func (m *measured) targets(r *training, h hindsight, settled int64) {
	for _, part := range []float64{0.8, 0.95, 1.02, 1.1} {
		target := h.best * part
		advice, sure := r.firstOf(Setup{Total: r.steps, Settled: &settled, Target: &target}, func(j *Judge) []Verdict { return j.those(j.target, j.willMiss) })
		count := func(at map[Kind]*tally, in map[Kind]Verdict) {
			_, reached := in[Reached]
			at[Reached].add(reached, part > 1)
			_, miss := in[WillMiss]
			at[WillMiss].add(miss, part < 1)
		}
		count(m.advice, advice)
		count(m.sure, sure)
	}
}

func (m *measured) peers(r *training, h hindsight, all []training) {
	traces, best := peers(r, all)
	if len(traces) < 3 {
		return
	}
	advice, _ := r.firstOf(Setup{Total: r.steps, Earlier: traces}, func(j *Judge) []Verdict { return j.those(j.belowPeers) })
	_, said := advice[BelowPeers]
	m.advice[BelowPeers].add(said, h.best > quantile(best, 0.5))
}

// settled measures the rules on a run whose learning rate has fallen for the last time in its first half.
func (m *measured) settled(r *training, h hindsight, sure map[Kind]Verdict, all []training) {
	m.settledRuns++
	step := int64(-1)
	if v, ok := sure[Plateau]; ok {
		step = v.Step
	}
	m.plateau.add(r, h, step)
	median := int64(-1)
	if traces, _ := peers(r, all); len(traces) >= 3 {
		advice, _ := r.firstOf(Setup{Total: r.steps, Earlier: traces}, func(j *Judge) []Verdict { return j.those(j.belowPeers) })
		if v, ok := advice[BelowPeers]; ok {
			median = v.Step
		}
	}
	for i, step := range []int64{patience(h, 3), patience(h, 0), patience(h, 1), patience(h, 10), median, earliest(h)} {
		m.rules[ruleNames[i]].add(r, h, step)
	}
}
