package controller

import (
	"path/filepath"
	"strconv"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/curve/judge"
	"github.com/gangrun/gangrun/internal/curvewatch"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/supervisor"
)

// watchCurves returns a launcher that adds events for what the curves of the job show.
func (s *session) watchCurves(l supervisor.Launcher) supervisor.Launcher {
	if s.spec.EarlyStop == "" || s.spec.EarlyStop == job.EarlyStop(job.EarlyOff) { // it is empty in records of older versions
		return l
	}
	return curvewatch.New(l, curveOptions(s.spec))
}

// curveOptions returns how the curves of a job are judged.
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
