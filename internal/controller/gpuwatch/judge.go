package gpuwatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

const (
	lasting   = 6  // number of samples in a row, of 5 s each, that must show the same
	underLoad = 20 // with at least this utilisation, in percent, the PCIe link must be at its best
)

// sign is a sign of ill health that the samples of a GPU show.
type sign struct {
	sign     job.GPUSign
	severity job.Severity
	text     string // the text does not name the GPU
	hint     string
}

// health judges the samples of one GPU. It does not read the clock.
type health struct {
	last      nvml.Sample
	samples   int
	throttled map[string]int // number of samples in a row for each reason
	narrow    int            // number of samples in a row under load with a slow PCIe link
	links     nvml.LinkErrors
	told      map[string]bool
}

// throttles has the reasons for lowered clocks that are signs of ill health, with their meanings. Other reasons are no
// such signs, for instance an idle GPU, or a limit that the user has set.
var throttles = map[string]struct{ means, hint string }{
	"hw_thermal_slowdown":     {"it is too hot", "check the fans and the air of the host"},
	"sw_thermal_slowdown":     {"it is too hot", "check the fans and the air of the host"},
	"hw_power_brake_slowdown": {"the power supply of the host asks for it", "check the power supplies of the host"},
	"hw_slowdown":             {"it is too hot, or draws too much power", "check the fans and the power supplies of the host"},
}

// judge judges the next sample. It returns the signs that it has not returned before.
func (h *health) judge(s nvml.Sample) (signs []sign) {
	if h.told == nil {
		h.told, h.throttled, h.links = map[string]bool{}, map[string]int{}, s.LinkErrors
	}
	first := h.samples == 0
	h.last = s
	h.samples++
	say := func(key string, v sign) {
		if !h.told[key] {
			h.told[key] = true
			signs = append(signs, v)
		}
	}
	switch {
	case s.Remapped.Failure:
		say("remap failed", sign{job.GPURemap, job.SeverityError, "a row of its memory is broken, and there is no spare row left to replace it", "leave the GPU out, and have it replaced"})
	case s.Remapped.Pending:
		say("remap", sign{job.GPURemap, job.SeverityWarning, "rows of its memory are broken and stay in use until it is reset", "when no program uses the GPU, as root: nvidia-smi --gpu-reset -i INDEX"})
	case s.Retired.Pending:
		say("retire", sign{job.GPURemap, job.SeverityWarning, "pages of its memory are broken and stay in use until it is reset", "when no program uses the GPU, as root: nvidia-smi --gpu-reset -i INDEX"})
	}
	if s.Recovery != "" {
		say("recovery "+s.Recovery, sign{job.GPURecovery, job.SeverityError, "the driver says that it must be recovered: " + s.Recovery, recoveryHint(s.Recovery)})
	}
	for reason, t := range throttles {
		if !slices.Contains(s.Throttle, reason) {
			delete(h.throttled, reason)
			continue
		}
		if h.throttled[reason]++; h.throttled[reason] == lasting {
			say("throttled: "+t.means, sign{job.GPUThrottled, job.SeverityWarning,
				fmt.Sprintf("its clock has been lowered for %d s, because %s (%s; %d MHz, %d W, %d °C): its ranks are slower, and others wait for them", lasting*int(nvml.Look.Seconds()), t.means, reason, s.SMClock, s.Power, s.Temperature), t.hint})
		}
	}
	signs = append(signs, h.link(s)...)
	if !first {
		signs = append(signs, h.nvlink(s.LinkErrors)...)
	}
	return signs
}

// link judges the PCIe link. Only samples under load count, because an idle GPU lowers the generation of its link.
func (h *health) link(s nvml.Sample) []sign {
	slow := s.Generation > 0 && s.Width > 0 && (s.Generation < s.LargestGeneration || s.Width < s.LargestWidth)
	switch {
	case s.Utilisation < underLoad:
		return nil
	case !slow:
		h.narrow = 0
		return nil
	}
	if h.narrow++; h.narrow != lasting || h.told["pci"] {
		return nil
	}
	h.told["pci"] = true
	return []sign{{job.GPUPCILink, job.SeverityWarning,
		fmt.Sprintf("its PCIe link is of generation %d with %d lanes, and could be of generation %d with %d lanes", s.Generation, s.Width, s.LargestGeneration, s.LargestWidth),
		"copies to and from it are slower: reseat the GPU or have its slot checked"}}
}

// nvlink judges how the error counters of the NVLinks have risen.
func (h *health) nvlink(now nvml.LinkErrors) (signs []sign) {
	failed := now.Recoveries > h.links.Recoveries
	noisy := now.Replays > h.links.Replays || now.CRC > h.links.CRC
	const hint = "run nvidia-smi nvlink -e; if the numbers rise, have the GPU, the bridge or the switch checked"
	switch {
	case failed && !h.told["relinked"]:
		h.told["relinked"] = true
		return []sign{{job.GPUNVLink, job.SeverityWarning, fmt.Sprintf("an NVLink has failed and was recovered %d times since the gang began", now.Recoveries-h.links.Recoveries), hint}}
	case noisy && !h.told["nvlink"]:
		h.told["nvlink"] = true
		return []sign{{job.GPUNVLink, job.SeverityNote, fmt.Sprintf("its NVLinks had %d errors since the gang began, which were corrected", now.Replays-h.links.Replays+now.CRC-h.links.CRC), hint}}
	}
	return nil
}

// recoveryHint says what to do about a recovery action of the driver.
func recoveryHint(action string) string {
	switch {
	case strings.Contains(action, "reboot"):
		return "reboot the host before its GPUs are used again"
	case strings.Contains(action, "drain"):
		return "let programs on the GPU end, then reset it as root: nvidia-smi --gpu-reset -i INDEX"
	case strings.Contains(action, "reset"):
		return "when no program uses the GPU, as root: nvidia-smi --gpu-reset -i INDEX"
	}
	return "nvidia-smi -q shows it as GPU Recovery Action"
}

// pulse returns the means of the latest samples of the GPUs of a rank. It returns nil if there is no sample. It may be
// called while samples arrive.
func (r *reporter) pulse(rank int) *job.GPUPulse {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum job.GPUPulse
	n := 0
	for uuid, ranks := range r.gpus.ranks {
		h := r.health[uuid]
		if h == nil || !slices.Contains(ranks, rank) {
			continue
		}
		n++
		sum.Utilization += h.last.Utilisation
		sum.Memory += h.last.Memory
		sum.Power += h.last.Power
		sum.SMClock += h.last.SMClock
	}
	if n == 0 {
		return nil
	}
	return &job.GPUPulse{Utilization: sum.Utilization / n, Memory: sum.Memory / n, Power: sum.Power / n, SMClock: sum.SMClock / n}
}

// judge judges a sample of a GPU. It returns the signs that have not been reported yet.
func (r *reporter) judge(uuid string, s nvml.Sample) []sign {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health[uuid]
	if h == nil {
		if len(r.health) == maxDistinct {
			return nil
		}
		if r.health == nil {
			r.health = map[string]*health{}
		}
		h = &health{}
		r.health[uuid] = h
	}
	return h.judge(s)
}
