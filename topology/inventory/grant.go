package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Grant has the GPUs of this machine that a batch system or the user has given to a process.
// The zero Grant has all GPUs.
type Grant struct {
	Source string   // the variable or file that names the GPUs, or the batch system that gave none; empty if all GPUs were given
	Kind   Kind     // the batch system whose job the process is in, or None
	GPUs   []string // each is an index of the driver, a UUID, or the beginning of a UUID
}

// Bounded reports whether the Grant has only the GPUs in its field GPUs. If Bounded returns false, the Grant
// has all GPUs.
func (g Grant) Bounded() bool { return g.Source != "" }

// Granted returns the GPUs of this machine that were given to this process. hostName is the name of this host.
// If CUDA_VISIBLE_DEVICES is set, Granted uses its GPUs. It ignores everything after the first word that does
// not name a GPU, as the CUDA driver does. Otherwise the GPUs come from the batch system. In a Slurm job,
// SLURM_STEP_GPUS or, if that is not set, SLURM_JOB_GPUS lists them; if neither is set, the process has no
// GPUs. In a PBS job, the file PBS_GPUFILE lists them in lines HOST-gpuN, if it exists. In a Grid Engine job,
// SGE_HGR_gpu lists them, if it is set: it has the granted IDs of a resource map. In all other cases the
// process has all GPUs that it can see.
func Granted(lookup func(string) (string, bool), readFile func(path string) ([]byte, error), hostName string) (Grant, error) {
	get := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	g := Grant{}
	switch {
	case get("SLURM_JOB_ID") != "" || get("SLURM_JOBID") != "":
		g.Kind = Slurm
	case get("PBS_JOBID") != "" || get("PBS_NODEFILE") != "":
		g.Kind = PBS
	case get("LSB_JOBID") != "":
		g.Kind = LSF
	case get("JOB_ID") != "" && get("SGE_ROOT") != "":
		g.Kind = GridEngine
	case get("OAR_JOB_ID") != "" || get("OAR_JOBID") != "":
		g.Kind = OAR
	case get("FLUX_JOB_ID") != "":
		g.Kind = Flux
	}
	if visible, ok := lookup("CUDA_VISIBLE_DEVICES"); ok {
		g.Source = "CUDA_VISIBLE_DEVICES"
		g.GPUs = visibleDevices(visible)
		return g, nil
	}
	switch g.Kind {
	case GridEngine:
		list := get("SGE_HGR_gpu")
		if list == "" || list == "NONE" {
			return g, nil
		}
		var err error
		g.Source = "SGE_HGR_gpu"
		if g.GPUs, err = indices(strings.Join(strings.Fields(list), ",")); err != nil {
			return Grant{}, one(g.Source, 0, faultf("set CUDA_VISIBLE_DEVICES to the GPUs of this job", "is %s: %v", quote(list), err))
		}
	case Slurm:
		for _, name := range []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"} {
			list := get(name)
			if list == "" {
				continue
			}
			var err error
			g.Source = name
			if g.GPUs, err = indices(list); err != nil {
				return Grant{}, one(name, 0, faultf("hand on the environment of the batch job as it was, or set CUDA_VISIBLE_DEVICES", "is %s: %v", quote(list), err))
			}
			return g, nil
		}
		g.Source = string(Slurm)
	case PBS:
		file := get("PBS_GPUFILE")
		if file == "" {
			return g, nil
		}
		text, err := readFile(file)
		if err != nil {
			return Grant{}, one("PBS_GPUFILE", 0, faultf("unset it, or set CUDA_VISIBLE_DEVICES", "its file %s cannot be read: %v", quote(file), reason(err)))
		}
		g.Source = "PBS_GPUFILE"
		for line := range strings.Lines(string(text)) {
			at := strings.LastIndex(line, "-gpu")
			if at < 0 || !sameHost(line[:at], hostName) {
				continue
			}
			if n, err := strconv.Atoi(strings.TrimSpace(line[at+len("-gpu"):])); err == nil && n >= 0 {
				g.GPUs = append(g.GPUs, strconv.Itoa(n))
			}
		}
	}
	return g, nil
}

// visibleDevices reads the value of CUDA_VISIBLE_DEVICES.
func visibleDevices(list string) []string {
	var gpus []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		if n, err := strconv.Atoi(word); err == nil && n >= 0 {
			word = strconv.Itoa(n)
		} else if !strings.HasPrefix(word, "GPU-") && !strings.HasPrefix(word, "MIG-") {
			break
		}
		if !slices.Contains(gpus, word) {
			gpus = append(gpus, word)
		}
	}
	return gpus
}

// maxIndex is the largest index of a GPU.
const maxIndex = 1023

// indices reads a list such as 0,2-3.
func indices(list string) ([]string, error) {
	var gpus []string
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && isRange {
			to, err = strconv.Atoi(last)
		}
		if err != nil || from < 0 || to < from || to > maxIndex {
			return nil, fmt.Errorf("%s is no index of a GPU, and no range of them", quote(part))
		}
		for n := from; n <= to; n++ {
			gpus = append(gpus, strconv.Itoa(n))
		}
	}
	return gpus, nil
}

func sameHost(a, b string) bool {
	a, _, _ = strings.Cut(strings.ToLower(a), ".")
	b, _, _ = strings.Cut(strings.ToLower(b), ".")
	return a == b
}

// Apply removes devices that were not granted, and their links, from h. It returns the driver's
// indices of the GPUs that it has removed. It keeps a GPU if one of its MIG instances was
// granted. If the process sees only the GPUs that were granted, under other indices, Apply
// removes nothing.
func (g Grant) Apply(h *job.Host) (left []int) {
	if !g.Bounded() || g.renumbered(h) {
		return nil
	}
	var keep []int
	for i, d := range h.Devices {
		if g.names(d) || slices.ContainsFunc(h.Devices, func(part job.Device) bool { return part.GPU == d.UUID && g.names(part) }) {
			keep = append(keep, i)
		} else if !slices.Contains(left, d.Index) {
			left = append(left, d.Index)
		}
	}
	h.Devices = pick(h.Devices, keep)
	h.Links = pick(h.Links, keep)
	for i := range h.Links {
		h.Links[i] = pick(h.Links[i], keep)
	}
	h.NICs = slices.Clone(h.NICs)
	for i := range h.NICs {
		h.NICs[i].Links = pick(h.NICs[i].Links, keep)
	}
	return left
}

// renumbered reports whether the devices of h are the granted ones, but under other indices. This is so if
// there are at most as many devices as were granted, and one of the granted indices is not the index of a
// device.
func (g Grant) renumbered(h *job.Host) bool {
	if g.Source != "SLURM_STEP_GPUS" && g.Source != "SLURM_JOB_GPUS" {
		return false
	}
	seen := map[string]bool{}
	for _, d := range h.Devices {
		seen[strconv.Itoa(d.Index)] = true
	}
	return len(seen) <= len(g.GPUs) && slices.ContainsFunc(g.GPUs, func(gpu string) bool { return !seen[gpu] })
}

// names reports whether a device, or the GPU to which it belongs, was granted.
func (g Grant) names(d job.Device) bool {
	return slices.ContainsFunc(g.GPUs, func(gpu string) bool {
		if strings.Contains(gpu, "-") {
			return strings.HasPrefix(d.UUID, gpu) || d.GPU != "" && strings.HasPrefix(d.GPU, gpu)
		}
		return gpu == strconv.Itoa(d.Index)
	})
}

// pick returns the elements of list at the given indices. It ignores indices beyond the end of the list.
func pick[T any](list []T, places []int) []T {
	var out []T
	for _, at := range places {
		if at < len(list) {
			out = append(out, list[at])
		}
	}
	return out
}
