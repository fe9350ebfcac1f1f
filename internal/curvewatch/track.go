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

// slowFor is how long a run must have been slower. The times of points are the times of looks at the output, so a pause
// makes some seconds appear slower.
const slowFor = 20 * time.Second

const (
	maxSeries = 256  // limits the series that are kept
	maxPoints = 4096 // limits the points of a series; if there are more, older points are thinned out
)

// track has the curves of a run, and judges them. It does not read the clock or any file. Its memory is bounded.
type track struct {
	metric  string
	higher  *bool
	setup   judge.Setup
	planned bool // the user has said how many steps the run has

	earlier []Curve // curves of other runs of the job

	series []*series
	choice metrics.Choice
	stale  bool // the choice, or the state of the judge, is not up to date
	more   bool // values have arrived since the last look at the verdicts
	judge  *judge.Judge
	told   map[judge.Kind]bool // the verdicts of this attempt that were reported; true if they were sure
}

// series has the values that a source has reported under a name.
type series struct {
	name, source string
	points       []point
	new          bool // the series has got a point in this attempt
}

// point is the value of a step. It was reported at a time at which the run had used that many GPU-seconds.
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

// begin begins an attempt that starts from a checkpoint of that step. A step of 0 means the beginning of the job, and
// -1 means a checkpoint whose step is not known. In these two cases, begin removes all points. Otherwise, it removes
// the points after that step, which earlier attempts have reported, and values at the end that are not finite.
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

// total records how many steps the run has, according to a source. The largest number counts, because the number of
// steps of an epoch is smaller than that of the run.
func (t *track) total(steps int64) {
	if !t.planned && steps > t.setup.Total {
		t.setup.Total, t.stale = steps, true
	}
}

// find returns the index of the series with that name in a source. It returns -1 if there is none. A series of earlier
// attempts is continued by the first source of this attempt that has its name.
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

// add adds a value. It leaves out values whose names say nothing.
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
	if after := len(s.points); before < after && after <= 3 { // a series is chosen only when it has a few points
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

// add appends a point. The point replaces the points of the same step and of later steps, because the run has then
// resumed from an earlier step.
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

// choose chooses the series to judge by again. A new judge then gets all points of these series.
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
		return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.step, b.step), cmp.Compare(b.of, a.of)) // the rate first
	})
	for _, v := range values {
		t.judge.Add(v.of, v.step, v.gpu, v.value)
	}
	return true
}

// verdicts returns the verdicts that are true now, and that were not reported in this attempt, or were not sure then.
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

// about returns the series that verdicts of a kind are about.
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

// verdict converts a verdict of the judge to a verdict of gangrun.
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

// maxKept limits how many points of a curve are kept for later runs.
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
