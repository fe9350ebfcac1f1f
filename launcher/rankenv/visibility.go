package rankenv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// visibleDevices is the variable that CUDA reads. HIP reads it, too, if HIP_VISIBLE_DEVICES is not set. gangrun does
// not set ROCR_VISIBLE_DEVICES, because ROCm would then apply both variables, one after the other.
const visibleDevices = "CUDA_VISIBLE_DEVICES"

// GPUs returns two variables: CUDA_VISIBLE_DEVICES lists the GPUs that rank r sees, and GANGRUN_GPUS lists the
// GPUs that belong to r. It returns no variables for a rank without GPUs. onHost has all ranks on the host of
// r.
func GPUs(v job.GPUVisibility, onHost []job.Rank, r job.Rank) []string {
	if len(r.Devices) == 0 {
		return nil
	}
	return []string{
		visibleDevices + "=" + strings.Join(visibleGPUs(v, onHost, r), ","),
		"GANGRUN_GPUS=" + strings.Join(r.Devices, ","),
	}
}

// visibleGPUs lists the GPUs that a rank sees, in the order in which CUDA numbers them. With job.GPUVisibilityRank,
// these are the rank's own GPUs. Otherwise, they are the GPUs of all ranks on its host, in the order of LOCAL_RANK.
// With k GPUs per rank, the GPUs of LOCAL_RANK r have the numbers r*k to r*k+k-1. A process that uses a MIG instance
// sees no other GPU. So if any rank on a host has a MIG instance, each rank on that host sees only its own GPUs.
func visibleGPUs(v job.GPUVisibility, here []job.Rank, r job.Rank) []string {
	if v == job.GPUVisibilityRank {
		return r.Devices
	}
	here = slices.SortedFunc(slices.Values(here), func(x, y job.Rank) int { return cmp.Compare(x.LocalRank, y.LocalRank) })
	var all []string
	for _, other := range here {
		if slices.ContainsFunc(other.Devices, isInstance) {
			return r.Devices
		}
		all = append(all, other.Devices...)
	}
	return all
}

// isInstance reports whether a UUID belongs to a MIG instance.
func isInstance(uuid string) bool { return strings.HasPrefix(uuid, "MIG-") }

// SharedView reports whether gangrun lets the ranks on a host see each other's GPUs. It returns
// false if the user has set CUDA_VISIBLE_DEVICES for any of these ranks.
func SharedView(a job.Attempt, host string) bool {
	here := a.Placement.On(host)
	for _, r := range here {
		app, _ := a.App(r.Rank)
		for _, env := range []map[string]string{a.Env, app.Env} {
			if _, set := env[visibleDevices]; set {
				return false
			}
		}
	}
	return slices.ContainsFunc(here, func(r job.Rank) bool {
		return len(r.Devices) > 0 && len(visibleGPUs(a.GPUVisibility, here, r)) > len(r.Devices)
	})
}
