// Package measure measures how fast a host is: its CPUs, its memory, the disks of two directories and, with a
// Python program that uses torch, its GPUs. The measurements are short, so their results are good only for a
// comparison with the same measurements of other hosts.
package measure

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/agent/process"
	"github.com/gangrun/gangrun/internal/job"
)

// Measurer measures this host.
type Measurer struct {
	Host     string
	Memory   int64             // bytes of memory that a measurement may use
	Env      []string          // environment variables of a rank, as NAME=VALUE
	Children *process.Children // runs helper programs
}

// root is the root directory of this host.
var root = os.DirFS("/")

// Speeds makes the measurements of ask, one after the other. If ask names any kind of GPU speed, Speeds
// measures all kinds of GPU speed. When ctx ends, it returns what it has measured so far.
func (m Measurer) Speeds(ctx context.Context, ask job.Measure) (all []job.Speed) {
	add := func(kind job.SpeedKind, speeds ...job.Speed) {
		for _, s := range speeds {
			if s.Kind == "" {
				s.Kind = kind
			}
			s.Host = m.Host
			all = append(all, s)
		}
	}
	for _, kind := range job.SpeedKinds() {
		if !slices.Contains(ask.Kinds, kind) || ctx.Err() != nil {
			continue
		}
		switch kind {
		case job.SpeedCPU:
			add(kind, cpus(ctx)...)
		case job.SpeedMemory:
			add(kind, memory(ctx, m.Memory)...)
		case job.SpeedCheckpoint:
			add(kind, disk(ctx, ask.CheckpointDir)...)
		case job.SpeedLog:
			add(kind, disk(ctx, ask.LogDir)...)
		}
	}
	if slices.ContainsFunc(ask.Kinds, job.SpeedKind.OfGPU) && ctx.Err() == nil {
		add(job.SpeedMatmul, m.gpus(ctx, ask.Python)...)
	}
	return all
}

// best calls f at least once, and again until limit is over or ctx ends. It returns the greatest result of f.
func best(ctx context.Context, limit time.Duration, f func() float64) (value float64) {
	for begun := time.Now(); ; {
		value = max(value, f())
		if time.Since(begun) > limit || ctx.Err() != nil {
			return value
		}
	}
}
