package launcher

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// visibleDevices is the variable that CUDA reads, and HIP where HIP_VISIBLE_DEVICES is
// not set. ROCR_VISIBLE_DEVICES is left alone: ROCm would apply both, one after the
// other.
const visibleDevices = "CUDA_VISIBLE_DEVICES"

// gpuEnv names the GPUs that a rank sees, and those that are its own. A rank without
// GPUs has neither variable. The ranks of its host are here.
func gpuEnv(v job.GPUVisibility, here []job.Rank, r job.Rank) []string {
	if len(r.Devices) == 0 {
		return nil
	}
	return []string{
		visibleDevices + "=" + strings.Join(visibleGPUs(v, here, r), ","),
		"GANGRUN_GPUS=" + strings.Join(r.Devices, ","),
	}
}

// visibleGPUs lists the GPUs that a rank sees, in the order in which CUDA numbers them.
// With job.GPUVisibilityRank they are its own. Else they are those of all ranks on its
// host, in the order of LOCAL_RANK: with k GPUs a rank, those of LOCAL_RANK r have the
// numbers r*k to r*k+k-1. CUDA shows a process one MIG instance and no other GPU beside
// it, so that ranks of a host where any has an instance see their own.
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

// isInstance reports whether a UUID is that of a MIG instance.
func isInstance(uuid string) bool { return strings.HasPrefix(uuid, "MIG-") }

// SharedView reports whether the ranks on a host see GPUs of each other by what gangrun
// tells them. Where the user has set CUDA_VISIBLE_DEVICES for any of them, it does not.
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
