// Package curveview reads the metrics of a run from files and judges its curves. It prints the curves with the
// verdicts and a plot.
package curveview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/metrics"
)

// Options says how Read chooses and judges curves.
type Options struct {
	Metric  string   // the series by which the run is judged; "" means the best one whose name is known
	Higher  *bool    // whether higher values of Metric are better; nil if its name tells that
	Target  *float64 // the value that Metric should reach
	Total   int64    // planned number of steps; if it is 0, Read takes the number from the files
	Settled *int64   // see judge.Setup
	Earlier []string // files of earlier runs of the same job
	Journal string   // the journal of a run of gangrun; "" if there is none
	// Seconds is the time that the run has taken. If it is 0, Read computes it from the times in the files, if
	// they have times. GPUs is the number of GPUs that the run had.
	Seconds float64
	GPUs    float64
}

// Report has the curves of a run and the verdicts about them.
type Report struct {
	Files []File `json:"files"`
	// Metric is the curve by which the run is judged, and Train its training loss. A curve that does not
	// exist is nil.
	Metric *Curve `json:"metric"`
	Train  *Curve `json:"train"`
	// Throughput is work per time, in any unit; nil if the files do not tell it.
	Throughput *Curve `json:"-"`
	Total      int64  `json:"total_steps"` // planned number of steps; 0 if not known
	// Verdicts has the verdicts that are true at the end of the curves. History has verdicts that were true at
	// any time: the first verdict of each kind, and the first sure verdict of each kind.
	Verdicts []judge.Verdict `json:"verdicts"`
	History  []judge.Verdict `json:"history"`
}

// File is a file that was read.
type File struct {
	Path    string         `json:"path"`
	Format  metrics.Format `json:"format"`
	Series  []string       `json:"series"`
	Problem string         `json:"problem,omitempty"`
}

// Curve is a series of a run.
type Curve struct {
	Series string  `json:"series"`
	Path   string  `json:"path"`
	Higher bool    `json:"higher_is_better"`
	Values int     `json:"values"`
	Last   *Value  `json:"last"` // the last finite value
	Best   *Value  `json:"best"`
	points []point // in the order of their steps
}

// NewCurve returns a Curve for Plot. Lower values of the curve count as better. points must come in the order
// of their steps.
func NewCurve(name string, points iter.Seq2[int64, float64]) *Curve {
	s := newSeries(name, "")
	for step, value := range points {
		s.add(point{step: step, value: value})
	}
	return chosen{by: map[judge.Signal]*series{judge.Train: s}}.curve(judge.Train)
}

// Points calls do for each point, in the order of their steps, until do returns false.
func (c *Curve) Points(do func(step int64, value float64) bool) {
	for _, p := range c.points {
		if !do(p.step, p.value) {
			return
		}
	}
}

// Value is a value at a step.
type Value struct {
	Step  int64   `json:"step"`
	Value float64 `json:"value"`
}

type point struct {
	step  int64
	time  float64
	value float64
}

// series has the points of a file that have the same name.
type series struct {
	name, path string
	points     []point
}

type (
	// NoMetricError is the error of Read if the files have no metric by which to judge.
	NoMetricError = metrics.NoMetricError
	// DirectionError is the error of Read if nothing says whether higher values of the metric are better.
	DirectionError = metrics.DirectionError
)

// Read reads the files and directories at paths, and judges the run whose metrics they have. In a directory, it
// reads those files that have metrics according to their names. Read returns an error if a file does not exist.
// If a file is damaged, the Report names the problem, but Read returns an error if there are no other files.
// The error is a *NoMetricError if there is nothing to judge, and a *DirectionError if nothing says whether
// higher values of the metric are better.
func Read(ctx context.Context, paths []string, o Options) (Report, error) {
	r := Report{Files: []File{}, Verdicts: []judge.Verdict{}, History: []judge.Verdict{}, Total: o.Total}
	paths, err := files(paths)
	if err != nil {
		return r, err
	}
	var all []*series
	var first error
	for _, path := range paths {
		file, found, total, err := read(ctx, path, o.Metric)
		if errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		if err != nil && len(found) == 0 {
			first = errors.Join(first, err)
		}
		if r.Total == 0 {
			r.Total = total
		}
		r.Files, all = append(r.Files, file), append(all, found...)
	}
	if o.Journal != "" {
		file, found, total, err := readJournal(ctx, o.Journal)
		if err != nil {
			return r, err
		}
		if r.Total == 0 {
			r.Total = total
		}
		r.Files, all = append(r.Files, file), append(all, found...)
	}
	if len(all) == 0 && first != nil {
		return r, first
	}
	c, err := choose(all, o)
	if err != nil {
		return r, err
	}
	if c.by[judge.Train] != nil {
		r.Train = c.curve(judge.Train)
	}
	if c.by[judge.Validation] != nil {
		r.Metric = c.curve(judge.Validation)
	} else {
		r.Metric = r.Train
	}
	if c.by[judge.Throughput] != nil {
		r.Throughput = c.curve(judge.Throughput)
		r.Throughput.Higher = true
	}
	setup := judge.Setup{Higher: c.higher, Indirect: c.indirect, Total: r.Total, Settled: o.Settled, Target: o.Target}
	for _, path := range o.Earlier {
		_, found, _, err := read(ctx, path, o.Metric)
		if err != nil {
			return r, fmt.Errorf("earlier run %q: %w", path, err)
		}
		if t := trace(found, r.Metric.Series); t != nil {
			setup.Earlier = append(setup.Earlier, t)
		}
	}
	r.judge(setup, c, o)
	return r, nil
}

// read returns the series of a file, ordered by their names.
func read(ctx context.Context, path, metric string) (File, []*series, int64, error) {
	file := File{Path: path, Series: []string{}}
	by := map[string]*series{}
	f, err := metrics.Each(ctx, path, metric, func(p metrics.Point) {
		s := by[p.Series]
		if s == nil {
			s = newSeries(p.Series, path)
			by[p.Series] = s
			file.Series = append(file.Series, p.Series)
		}
		s.add(point{p.Step, p.Time, p.Value})
	})
	var total int64
	if f != nil {
		file.Format, total = f.Format(), f.Total()
	}
	if err != nil {
		file.Problem = err.Error()
		err = fmt.Errorf("read %q: %w", path, err)
	}
	slices.Sort(file.Series)
	var all []*series
	for _, name := range file.Series {
		all = append(all, by[name])
	}
	return file, all, total, err
}

func newSeries(name, path string) *series {
	return &series{name: name, path: path}
}

// add appends a point. It removes the points with the same or a later step, because the run was resumed from
// an earlier step.
func (s *series) add(p point) {
	i := len(s.points)
	for i > 0 && s.points[i-1].step >= p.step {
		i--
	}
	s.points = append(s.points[:i], p)
	if len(s.points) > maxPoints {
		s.halve()
	}
}

// maxPoints is the largest number of points that are kept of a series.
const maxPoints = 1 << 20

// halve keeps the lowest and the highest of each four points. A value that is not finite counts as both.
func (s *series) halve() {
	kept := s.points[:0]
	for four := range slices.Chunk(s.points, 4) {
		low, high := 0, 0
		for i, p := range four {
			if !finite(p.value) || p.value < four[low].value {
				low = i
			}
			if !finite(p.value) || p.value > four[high].value {
				high = i
			}
		}
		a, b := four[min(low, high)], four[max(low, high)]
		if kept = append(kept, a); low != high {
			kept = append(kept, b)
		}
	}
	s.points = kept
}

// chosen has the series by which gangrun judges a run.
type chosen struct {
	by       map[judge.Signal]*series
	higher   bool
	indirect bool
}

// choose chooses a series for each signal.
func choose(all []*series, o Options) (chosen, error) {
	c := chosen{by: map[judge.Signal]*series{}}
	choice, err := metrics.Choose(candidates(all), o.Metric, o.Higher)
	if err != nil {
		return c, err
	}
	for of, i := range choice.By {
		c.by[of] = all[i]
	}
	c.higher, c.indirect = choice.Higher, choice.Indirect
	return c, nil
}

func candidates(all []*series) (out []metrics.Candidate) {
	for _, s := range all {
		out = append(out, metrics.Candidate{Name: s.name, Values: len(s.points)})
	}
	return out
}

// trace returns the series with a name as the trace of an earlier run.
func trace(all []*series, name string) (t judge.Trace) {
	i := metrics.Named(candidates(all), name)
	if i < 0 {
		return nil
	}
	for _, p := range all[i].points {
		if finite(p.value) {
			t = append(t, judge.TracePoint{Step: p.step, Value: p.value})
		}
	}
	return t
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// curve returns the series for a signal as a Curve.
func (c chosen) curve(of judge.Signal) *Curve {
	s := c.by[of]
	out := &Curve{Series: s.name, Path: s.path, Values: len(s.points), points: s.points}
	out.Higher = of == judge.Validation && c.higher
	for _, p := range s.points {
		if !finite(p.value) {
			continue
		}
		v := &Value{p.step, p.value}
		out.Last = v
		if out.Best == nil || out.Higher == (p.value > out.Best.Value) && p.value != out.Best.Value {
			out.Best = v
		}
	}
	return out
}

// NoFilesError returns the error for a run without logs.
func NoFilesError(run string) error {
	return failure.Usage("gangrun status "+run+" tells its attempts", "run %s has no logs yet", run)
}

// Sure reports whether a sure verdict that is true at the end of the curves says that the run should end. A
// verdict of kind judge.Reached says that, too.
func (r Report) Sure() bool {
	return slices.ContainsFunc(r.Verdicts, func(v judge.Verdict) bool { return v.Sure })
}
