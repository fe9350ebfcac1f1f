//go:build !race

package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// stops counts what a stopping rule would have done.
type stops struct {
	runs, stopped int
	far, wrong    int     // runs that it stops when their best validation is still more than 0.1 % away, and more than 1 %
	spent, saved  float64 // seconds of all runs, and those that the rule saves
	savedNear     float64 // seconds that it saves by stops that are at most 0.1 % away
	wrongOnes     []string
	distances     []float64
}

// add adds a run that a rule stops at a step; -1 means that the rule does not stop it.
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

// patience is the rule of Lightning and Keras: a run stops after so many checks without a better value. For
// Keras with patience 0, wait is 1.
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

// earliest returns the first check after which the best value improves by less than 0.1 %. No rule can know
// that.
func earliest(h hindsight) int64 {
	for _, p := range h.checks {
		if h.regret(p.step) <= 0.001 {
			return p.step
		}
	}
	return -1
}

// peers returns the traces of the other runs with the same data and model.
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

// healthy reports whether a user would want a run to go on until its plateau.
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

// measured has the results of the verdicts on one part of the corpus.
type measured struct {
	advice, sure      map[Kind]*tally
	bare, bareSure    tally // results of Diverged without validations
	ends              stops // stops by any sure verdict that needs no target, if it is known when the learning rate no longer falls
	untold            stops // the same if only the number of steps is known
	plateau           stops
	rules             map[string]*stops
	schedules, kinds  map[string]int
	settledRuns, runs int
}

// ruleNames are the rules with which the plateau is compared.
var ruleNames = []string{"Lightning: patience 3", "Keras: patience 0", "Hugging Face: patience 1", "patience 10", "median of earlier runs", "with knowledge of the whole run: the first validation within 0.1 %"}

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
	bare := *r
	bare.bare = true
	advice, bareSure := bare.firstOf(Setup{Total: r.steps}, func(j *Judge) []Verdict { return j.those(j.finite, j.diverged) })
	m.bare.add(said(advice, Diverged) || said(advice, NotFinite), h.diverged)
	m.bareSure.add(said(bareSure, Diverged) || said(bareSure, NotFinite), h.diverged)
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

// targets measures targets that a run reaches, and some that it does not reach.
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

// settled measures the rules on a run whose learning rate falls for the last time in its first half.
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
