package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/gangrun/gangrun/internal/controller/hosts"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/preflight"
)

// rechecker checks hosts that have made an attempt fail, before they are used again. The hosts must answer. They must
// also pass the static checks of the preflight, unless the job has no preflight.
type rechecker struct {
	spec     job.Spec
	launcher *launcher.Launcher
	probed   *hosts.Found
}

// Unfit implements supervisor.Looker.
func (r rechecker) Unfit(ctx context.Context, names []string) map[string]string {
	unfit := r.probed.Silent(ctx, names)
	if r.spec.Preflight == job.PreflightOff || ctx.Err() != nil {
		return unfit
	}
	inventory, err := r.probed.Inventory(ctx)
	if err != nil {
		return unfit
	}
	reasons := make([]string, len(inventory.Hosts))
	var checking sync.WaitGroup
	for i, h := range inventory.Hosts {
		if _, silent := unfit[h.Name]; !silent && slices.Contains(names, h.Name) {
			checking.Go(func() {
				facts, err := r.launcher.Survey(ctx, []job.Host{h}, preflight.Questions(r.spec))
				if err != nil {
					reasons[i] = err.Error()
				} else if f := job.FirstError(preflight.Static(r.spec, facts)); f != nil {
					reasons[i] = h.Name + ": " + f.Text
				}
			})
		}
	}
	checking.Wait()
	for i, why := range reasons {
		if why != "" {
			if unfit == nil { // nil for simulated hosts
				unfit = map[string]string{}
			}
			unfit[inventory.Hosts[i].Name] = why
		}
	}
	return unfit
}
