package curvewatch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/metrics"
)

// slowFor is how long a run must have been slower before the user is told. The times are those of the looks at
// the output, so a pause makes some seconds appear slower.
const slowFor = 20 * time.Second

const (
	maxSeries = 256  // maximum number of series
	maxPoints = 4096 // maximum number of points of a series; in a longer series, older points are thinned out
)

// track has the curves of a run, and judges them. It has no clock and reads nothing. Its memory is bounded.
type track struct {
	metric  string
	higher  *bool
	setup   judge.Setup
	planned bool // the user has stated the number of steps of the run

	earlier []Curve // curves of other runs of the job

	series []*series
	choice metrics.Choice
	stale  bool // the choice of the series, or the judge, must be renewed
	more   bool // values have come since the last call of verdicts
	judge  *judge.Judge
	told   map[judge.Kind]bool // the verdicts of this attempt that the user was told; true if a verdict was sure
}

// series has the values that a source has reported under one name.
type series struct {
	name, source string
	points       []point
	new          bool // it has a point of this attempt
}

// point is a value at a step. at is when it was reported. gpu is the number of GPU-seconds that the run had
// used by then.
type point struct {
	step    int64
	byEpoch bool
	at      time.Time
	gpu     float64
	value   float64
}

func newTrack(metric string, higher *bool, setup judge.Setup) *track {
	return &track{metric: metric, higher: higher, setup: setup, planned: setup.Total > 0, told: map[judge.Kind]bool{}}
}

// begin begins an attempt that starts from a checkpoint of the given step. The step is 0 at the beginning of
// the job, and -1 if the step of the checkpoint is not known. begin removes the values after that step.
func (t *track) begin(step int64) {
	t.told, t.stale, t.judge, t.choice = map[judge.Kind]bool{}, true, nil, metrics.Choice{}
	if step <= 0 {
		t.series = nil
		return
	}
	for _, s := range t.series {
		s.new = false
		s.points = slices.DeleteFunc(s.points, func(p point) bool { return !p.byEpoch && p.step > step })
		for n := len(s.points); n > 0 && !finite(s.points[n-1].value); n-- {
			s.points = s.points[:n-1]
		}
	}
}

// total records the number of steps of the run, as a source reports it. The largest number counts, because the
// number of steps of an epoch is smaller than that of the run.
func (t *track) total(steps int64) {
	if !t.planned && steps > t.setup.Total {
		t.setup.Total, t.stale = steps, true
	}
}

// find returns the index of the series with a name in a source, or -1. A series of an earlier attempt continues
// in the first source of this attempt that has its name.
func (t *track) find(source, name string) int {
	i := slices.IndexFunc(t.series, func(s *series) bool { return s.name == name && s.source == source })
	if i >= 0 {
		return i
	}
	if i = slices.IndexFunc(t.series, func(s *series) bool { return s.name == name && !s.new }); i >= 0 {
		t.series[i].source = source
	}
	return i
}

// add adds a value. It ignores values whose names have no known meaning.
func (t *track) add(source, name string, p point) {
	i := t.find(source, name)
	if i < 0 {
		m, known := metrics.MeaningOf(name)
		known = known || m.Training || metrics.Indirect(name) || metrics.Named([]metrics.Candidate{{Name: name}}, t.metric) >= 0
		if !known || len(t.series) == maxSeries {
			return
		}
		i = len(t.series)
		t.series = append(t.series, &series{name: name, source: source})
	}
	s := t.series[i]
	before := len(s.points)
	s.add(p)
	s.new, t.more = true, true
	if after := len(s.points); before < after && after <= 3 { // the choice of the series can change only then
		t.stale = true
	}
	if t.stale {
		return
	}
	for of, chosen := range t.choice.By {
		if chosen == i {
			t.judge.Add(of, p.step, p.gpu, p.value)
		}
	}
}

// add appends a point. It removes the points of the same step and of later ones, because the run was resumed
// from an earlier step.
func (s *series) add(p point) {
	i := len(s.points)
	for i > 0 && s.points[i-1].step >= p.step {
		i--
	}
	s.points = append(s.points[:i], p)
	if len(s.points) < maxPoints {
		return
	}
	kept := s.points[:0]
	for i, p := range s.points {
		if i%2 == 0 || i >= maxPoints/2 {
			kept = append(kept, p)
		}
	}
	s.points = kept
}

// choose chooses the series by which to judge again. It gives their values so far to a new judge.
func (t *track) choose() bool {
	all := make([]metrics.Candidate, len(t.series))
	for i, s := range t.series {
		all[i] = metrics.Candidate{Name: s.name, Values: len(s.points)}
	}
	choice, err := metrics.Choose(all, t.metric, t.higher)
	if err != nil {
		return false
	}
	t.choice, t.stale = choice, false
	setup := t.setup
	setup.Higher, setup.Indirect = choice.Higher, choice.Indirect
	if s := t.about(judge.BelowPeers); s != nil {
		for _, c := range t.earlier {
			if c.Metric == s.name {
				setup.Earlier = append(setup.Earlier, c.Points)
			}
		}
	}
	t.judge = judge.New(setup)
	type value struct {
		of judge.Signal
		point
	}
	var values []value
	for of, i := range choice.By {
		for _, p := range t.series[i].points {
			values = append(values, value{of, p})
		}
	}
	slices.SortStableFunc(values, func(a, b value) int {
		// Of values at the same step, the learning rate comes before the loss.
		return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.step, b.step), cmp.Compare(b.of, a.of))
	})
	for _, v := range values {
		t.judge.Add(v.of, v.step, v.gpu, v.value)
	}
	return true
}

// verdicts returns the verdicts that are true now. It omits verdicts that it has returned in this attempt,
// unless they were not sure then and are sure now.
func (t *track) verdicts() (all []job.CurveVerdict) {
	if !t.more || t.stale && !t.choose() || t.judge == nil {
		return nil
	}
	t.more = false
	for _, v := range t.judge.Verdicts() {
		s := t.about(v.Kind)
		if sure, told := t.told[v.Kind]; s == nil || !s.new || told && (sure || !v.Sure) {
			continue
		}
		said := s.verdict(v)
		if v.Kind == judge.Slower && s.points[len(s.points)-1].at.Sub(said.SinceTime) < slowFor {
			continue
		}
		if v.Kind == judge.Diverged && v.Sure {
			said.Text += "; if that is how this job learns, run it with --early-stop diverged=advise"
		}
		t.told[v.Kind] = v.Sure
		all = append(all, said)
	}
	return all
}

// about returns the series that verdicts of a kind concern.
func (t *track) about(kind judge.Kind) *series {
	order := []judge.Signal{judge.Train, judge.Validation}
	switch kind {
	case judge.Plateau, judge.Reached, judge.WillMiss, judge.BelowPeers:
		order = []judge.Signal{judge.Validation, judge.Train}
	case judge.Slower:
		order = []judge.Signal{judge.Throughput, judge.Train}
	}
	for _, of := range order {
		if i, ok := t.choice.By[of]; ok {
			return t.series[i]
		}
	}
	return nil
}

// verdict converts a verdict of the judge.
func (s *series) verdict(v judge.Verdict) job.CurveVerdict {
	out := job.CurveVerdict{
		Kind: string(v.Kind), Metric: s.name, Source: s.source, Since: v.Since, Step: v.Step, Text: v.Sentence,
		Confidence: v.Confidence, Sure: v.Sure, Saves: v.Saves,
	}
	for _, p := range s.points {
		if p.step >= v.Since {
			out.SinceTime = p.at
			break
		}
	}
	if n := len(s.points); n > 0 {
		last := s.points[n-1]
		if out.ByEpoch = last.byEpoch; finite(last.value) {
			out.Value = &last.value
		}
	}
	return out
}

// Curve has the values, in a run, of the metric by which the run was judged.
type Curve struct {
	Metric string      `json:"metric"`
	Points judge.Trace `json:"points"`
}

// maxKept is the maximum number of points of a curve that are kept for later runs.
const maxKept = 512

// judged returns the curve by which the run was judged. ok is false if there is none.
func (t *track) judged() (c Curve, ok bool) {
	s := t.about(judge.BelowPeers)
	if s == nil {
		return c, false
	}
	c.Metric = s.name
	every := max(1, (len(s.points)+maxKept-1)/maxKept)
	for i, p := range s.points {
		if finite(p.value) && (i%every == 0 || i == len(s.points)-1) {
			c.Points = append(c.Points, judge.TracePoint{Step: p.step, Value: p.value})
		}
	}
	return c, len(c.Points) > 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
