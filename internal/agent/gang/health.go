package gang

import (
	"cmp"
	"context"

	"github.com/gangrun/gangrun/internal/agent/health"
	"github.com/gangrun/gangrun/internal/environ"
)

// watchHealth reports signs that this host is ill, or soon will be, until ctx ends.
func (g *Gang) watchHealth(ctx context.Context) {
	var paths []health.Path
	if dir := string(g.Start.CheckpointDir); dir != "" {
		paths = append(paths, health.Path{Path: dir, Use: health.UseCheckpoints})
	}
	paths = append(paths,
		health.Path{Path: string(g.Start.LogDir), Use: health.UseLogs},
		health.Path{Path: "/dev/shm", Use: health.UseShared},
		health.Path{Path: cmp.Or(environ.Lookup(g.Env, "TMPDIR"), "/tmp"), Use: health.UseTemporary})
	health.Watch(ctx, health.Options{Host: g.Host, Ranks: g.livingPIDs, Paths: paths, Emit: g.Reports.Event})
}

// livingPIDs maps the PID of each living rank to the number of the rank.
func (g *Gang) livingPIDs() map[int]int {
	pids := make(map[int]int, len(g.ranks))
	for _, r := range g.ranks {
		if pid, ok := r.Living(); ok {
			pids[pid] = r.number
		}
	}
	return pids
}
