package probe

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// faults adds notes about what gangrun-nvml could not read. It omits values that the GPUs or the driver do not
// have, and lost GPUs, of which nothing can be read. GPUs and fields with the same reason share a note.
func (f *finder) faults(r nvml.Report) {
	const hint = "inside a container or batch job that is as it should be; else run nvidia-smi -q as the same user and look"
	if why := r.Errors["devices"]; why != "" {
		f.say(job.SeverityNote, hint, "NVML does not report every GPU: %s", oneLine(why))
	}
	for _, field := range slices.Sorted(maps.Keys(r.Errors)) {
		if why := r.Errors[field]; field != "devices" && !nvml.Lacks(why) {
			f.say(job.SeverityNote, hint, "NVML does not report %s: %s", field, oneLine(why))
		}
	}
	type fault struct{ field, why string }
	var faults []fault
	gpus := map[fault][]string{} // the numbers of the GPUs
	for _, d := range r.Devices {
		if d.Lost != "" {
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(d.Errors)) {
			x := fault{field, oneLine(d.Errors[field])}
			if nvml.Lacks(d.Errors[field]) {
				continue
			}
			if gpus[x] == nil {
				faults = append(faults, x)
			}
			gpus[x] = append(gpus[x], strconv.Itoa(d.Index))
		}
	}
	type note struct{ gpus, why string }
	var notes []note
	fields := map[note][]string{}
	for _, x := range faults {
		n := note{strings.Join(gpus[x], ", "), x.why}
		if fields[n] == nil {
			notes = append(notes, n)
		}
		fields[n] = append(fields[n], x.field)
	}
	for _, n := range notes {
		f.say(job.SeverityNote, hint, "NVML does not report %s of GPU %s: %s", strings.Join(fields[n], ", "), n.gpus, n.why)
	}
}

// oneLine joins the lines of text.
func oneLine(text string) string {
	return shown(strings.Join(strings.Split(strings.TrimSpace(text), "\n"), "; "))
}
