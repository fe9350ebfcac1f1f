// Package measure measures how fast a host is: its CPUs, its memory, the disks of two directories
// and, through a Python program with torch, its GPUs. Each measurement is short, and only good
// for a comparison with the same measurement on other hosts.
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
	Memory   int64             // how many bytes of memory a measurement may take
	Env      []string          // of a rank
	Children *process.Children // starts helper programs
}

// root has the files of this host.
var root = os.DirFS("/")

// Speeds measures what is asked for, one after the other; if one kind of GPUs is asked for, all
// of them. If ctx ends, it returns what it has
// measured until then.
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

// best calls f until it has taken the time limit or ctx ends, at least once, and returns the
// greatest value that f has returned.
func best(ctx context.Context, limit time.Duration, f func() float64) (value float64) {
	for begun := time.Now(); ; {
		value = max(value, f())
		if time.Since(begun) > limit || ctx.Err() != nil {
			return value
		}
	}
}
