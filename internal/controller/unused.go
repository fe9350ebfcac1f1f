package controller

import (
	"fmt"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// allocation is the batch job whose hosts and GPUs the gangs of a run share.
type allocation struct {
	job   string // the ID of the job; empty if the hosts do not belong to a batch job
	noted bool   // a note about the unused part has been emitted
}

// allocationOf returns the allocation of a run.
func allocationOf(spec job.Spec, batch *job.BatchJob) allocation {
	if batch == nil || namesHosts(spec) {
		return allocation{}
	}
	return allocation{job: batch.ID}
}

// namesHosts reports whether a job names its hosts itself.
func namesHosts(spec job.Spec) bool {
	return spec.Hosts != "" || spec.Hostfile != "" || spec.Inventory != "" || spec.Loopback > 0
}

// note emits one note about what the first gang of the run leaves unused, because the user pays for
// the whole allocation.
func (a *allocation) note(placed job.Placement, hosts []job.Host, emit func(job.Event)) {
	if a.job == "" || a.noted {
		return
	}
	a.noted = true
	for _, text := range unused(placed, hosts, a.job) {
		emit(job.Event{Kind: job.KindNote, Text: text})
	}
}

// unused returns notes about hosts of a batch job that have no rank, and about GPUs of the other hosts that no rank
// has. If the ranks have no GPUs, GPUs do not count as unused.
func unused(placed job.Placement, hosts []job.Host, batch string) (notes []string) {
	var empty []string
	gpus, used := 0, map[string]bool{}
	for _, h := range hosts {
		ranks := placed.On(h.Name)
		if len(ranks) == 0 {
			empty = append(empty, h.Name)
			continue
		}
		gpus += len(h.Devices)
		for _, r := range ranks {
			for _, d := range r.Devices {
				used[h.Name+" "+d] = true
			}
		}
	}
	if len(empty) > 0 {
		slices.Sort(empty)
		notes = append(notes, fmt.Sprintf("%d of the %s of Slurm job %s have no rank of this gang: %s", len(empty), text.Count(len(hosts), "host"), batch, text.Some(empty, 4)))
	}
	if len(used) > 0 && len(used) < gpus {
		notes = append(notes, fmt.Sprintf("this gang uses %d of the %d GPUs that Slurm job %s has on its hosts", len(used), gpus, batch))
	}
	return notes
}
