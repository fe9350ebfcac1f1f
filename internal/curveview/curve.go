// Package curveview reads the metrics of a run from files, judges its curves, and prints them with the
// verdicts and a plot.
package curveview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/metrics"
	"github.com/gangrun/gangrun/internal/text"
)

// Options says how curves are chosen and judged.
type Options struct {
	Metric  string   // the series by which the run is judged; "" means the best one whose name is known
	Higher  *bool    // whether higher values of Metric are better; nil if its name tells that
	Target  *float64 // the value that Metric shall reach
	Total   int64    // planned steps; 0 if at most the files have that number
	Settled *int64   // see judge.Setup
	Earlier []string // files of earlier runs of the same job
	Journal string   // the journal of a run of gangrun; "" if there is none
	// Seconds is the time that the run has taken; 0 if at most the files have times. GPUs is the number of
	// GPUs that the run had.
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
	Total  int64  `json:"total_steps"` // planned steps; 0 if not known
	// Verdicts are true at the end of the curves. History has, for each kind, the first verdict that was ever
	// true, and the first that was sure.
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
	meaning    metrics.Meaning
	known      bool // the name tells the meaning
	points     []point
}

// NoMetricError is the error for files without a metric by which a run can be judged, or without the one that
// the user named.
type NoMetricError struct {
	Metric string // the metric that the user named; "" if there is none
	Series []string
}

func (e *NoMetricError) Error() string {
	if e.Metric != "" {
		return fmt.Sprintf("there is no metric %q", e.Metric)
	}
	return "no metric was found"
}

// Hint says how to name a metric.
func (e *NoMetricError) Hint() string {
	if len(e.Series) == 0 {
		return "gangrun curve reads the output of trainers, event files of TensorBoard, CSV, JSON lines, W&B offline runs and trainer_state.json"
	}
	return "name one with --metric: " + text.And(e.Series[:min(len(e.Series), 12)])
}

// DirectionError is the error for a metric of which it is not known whether higher values are better.
type DirectionError struct{ Metric string }

func (e *DirectionError) Error() string {
	return fmt.Sprintf("the name %q does not say whether higher or lower values are better", e.Metric)
}

// Hint says which flag to add.
func (e *DirectionError) Hint() string { return "add --higher or --lower" }

// Read reads the files and judges the run whose metrics they have. A file that does not exist is an error. A
// damaged file is a problem in the Report if there are other files, and otherwise an error. If there is
// nothing to judge, the error is a *NoMetricError.
func Read(ctx context.Context, paths []string, o Options) (Report, error) {
	r := Report{Files: []File{}, Verdicts: []judge.Verdict{}, History: []judge.Verdict{}, Total: o.Total}
	var all []*series
	var first error
	for _, path := range paths {
		file, found, total, err := read(ctx, path)
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
	setup := judge.Setup{Higher: c.higher, Total: r.Total, Settled: o.Settled, Target: o.Target}
	for _, path := range o.Earlier {
		_, found, _, err := read(ctx, path)
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
func read(ctx context.Context, path string) (File, []*series, int64, error) {
	f, points, err := metrics.ReadAll(ctx, path)
	file := File{Path: path, Series: []string{}}
	var total int64
	if f != nil {
		file.Format, total = f.Format(), f.Total()
	}
	if err != nil {
		file.Problem = err.Error()
		err = fmt.Errorf("read %q: %w", path, err)
	}
	by := map[string]*series{}
	for _, p := range points {
		s := by[p.Series]
		if s == nil {
			s = newSeries(p.Series, path)
			by[p.Series] = s
			file.Series = append(file.Series, p.Series)
		}
		s.add(point{p.Step, p.Time, p.Value})
	}
	slices.Sort(file.Series)
	var all []*series
	for _, name := range file.Series {
		all = append(all, by[name])
	}
	return file, all, total, err
}

func newSeries(name, path string) *series {
	s := &series{name: name, path: path}
	s.meaning, s.known = metrics.MeaningOf(name)
	return s
}

// add appends a point. It removes the points with the same or a later step, because the run was resumed from
// an earlier step.
func (s *series) add(p point) {
	i := len(s.points)
	for i > 0 && s.points[i-1].step >= p.step {
		i--
	}
	s.points = append(s.points[:i], p)
}

// chosen has the series by which a run is judged.
type chosen struct {
	by     map[judge.Signal]*series
	higher bool
}

// choose chooses a series for each signal: the one whose name has the lowest Rank. Among several with the
// same Rank, it chooses the longest.
func choose(all []*series, o Options) (chosen, error) {
	c := chosen{by: map[judge.Signal]*series{}}
	for _, s := range all {
		if !s.known {
			continue
		}
		old := c.by[s.meaning.Signal]
		if old == nil || few(old) && !few(s) || few(old) == few(s) && (s.meaning.Rank < old.meaning.Rank || s.meaning.Rank == old.meaning.Rank && len(s.points) > len(old.points)) {
			c.by[s.meaning.Signal] = s
		}
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	if o.Metric != "" {
		s := named(all, o.Metric)
		if s == nil {
			return c, &NoMetricError{o.Metric, names}
		}
		if o.Higher == nil && !s.meaning.Known {
			return c, &DirectionError{s.name}
		}
		delete(c.by, judge.Validation)
		if s.meaning.Signal == judge.Train && s.known && s.meaning.Known && (o.Higher == nil || !*o.Higher) {
			c.by[judge.Train] = s
		} else {
			c.by[judge.Validation] = s
		}
	}
	if c.by[judge.Train] == nil && c.by[judge.Validation] == nil {
		return c, &NoMetricError{Series: names}
	}
	if s := c.by[judge.Validation]; s != nil {
		c.higher = s.meaning.Higher
		if o.Higher != nil {
			c.higher = *o.Higher
		}
	}
	return c, nil
}

// few reports whether a series is too short to be judged.
func few(s *series) bool { return len(s.points) < 3 }

// named returns the longest series with a name. A series also has the name if its own name ends with a slash
// and name.
func named(all []*series, name string) (found *series) {
	for _, s := range all {
		if s.name == name && (found == nil || found.name != name || len(s.points) > len(found.points)) {
			found = s
		}
	}
	for _, s := range all {
		if found == nil && strings.HasSuffix(s.name, "/"+name) {
			found = s
		}
	}
	return found
}

// trace returns the series with a name as the trace of an earlier run.
func trace(all []*series, name string) (t judge.Trace) {
	s := named(all, name)
	if s == nil {
		return nil
	}
	for _, p := range s.points {
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

// Sure reports whether, at the end of the curves, a sure verdict says that the run should end. Reached is
// such a verdict, too.
func (r Report) Sure() bool {
	return slices.ContainsFunc(r.Verdicts, func(v judge.Verdict) bool { return v.Sure })
}
