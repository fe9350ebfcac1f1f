package controller

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/curvewatch"
	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/supervisor"
)

// watchCurves returns a launcher that adds events about the curves of the job.
func (s *session) watchCurves(l supervisor.Launcher) supervisor.Launcher {
	if s.spec.EarlyStop == "" || s.spec.EarlyStop == job.EarlyStop(job.EarlyOff) { // it is empty in records of older versions
		return l
	}
	o := curveOptions(s.spec)
	o.Earlier = s.earlierCurves
	s.curves = curvewatch.New(l, o)
	return s.curves
}

// curveName is a file in the directory of a run. It has the curve by which the run was judged.
const curveName = "curve.json"

const (
	maxEarlier   = 10      // limits the runs that are compared
	maxLooked    = 1000    // limits the entries of the history that are searched for these runs
	maxCurveFile = 1 << 20 // in bytes
)

// keepCurve writes the curve by which the run was judged, for later runs of the job.
func (s *session) keepCurve() error {
	if s.curves == nil {
		return nil
	}
	c, ok := s.curves.Judged()
	if !ok {
		return nil
	}
	text, err := exact.Marshal(c)
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(s.run.Dir, curveName), text, 0o600)
	}
	return err
}

// earlierCurves returns the curves of the newest runs of the same job that ended well: A run is of the same job if it
// has the same name or, if the job has no name, the same command. earlierCurves leaves out curves that cannot be read.
func (s *session) earlierCurves(ctx context.Context) (all []curvewatch.Curve) {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	entries, err := history.In(s.home).List(ctx, s.spec.Name, maxLooked)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.ExitCode != 0 || s.spec.Name == "" && !slices.Equal(e.Command, s.spec.Command) || len(all) == maxEarlier || ctx.Err() != nil {
			continue
		}
		run, err := home.Find(s.home, e.Run)
		if err != nil {
			continue
		}
		var c curvewatch.Curve
		text, err := safefile.ReadFile(filepath.Join(run.Dir, curveName), maxCurveFile)
		if err == nil && exact.Unmarshal(text, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}

// curveOptions returns the options for judging the curves of a job.
func curveOptions(spec job.Spec) curvewatch.Options {
	o := curvewatch.Options{
		Metric: spec.Curve.Metric,
		Setup:  judge.Setup{Total: int64(spec.Curve.Total)},
		Dirs:   []string{spec.CheckpointDir, spec.Workdir},
		StepOf: func(path string) int64 { return checkpoint.Step(filepath.Base(path)) },
	}
	if spec.Curve.Goal != job.GoalAuto {
		higher := spec.Curve.Goal == job.GoalMax
		o.Higher = &higher
	}
	if target, err := strconv.ParseFloat(spec.Curve.Target, 64); err == nil {
		o.Setup.Target = &target
	}
	if end := int64(spec.Curve.DecayEnd); end >= 0 {
		o.Setup.Settled = &end
	}
	return o
}
