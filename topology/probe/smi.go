package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
	"github.com/gangrun/gangrun/topology/nvml"
)

// The exit statuses of nvidia-smi, from its manual.
const (
	smiNoSuch    = 6
	smiNoDriver  = 9
	smiCorrupt   = 14
	smiNoLibrary = 12
)

// byNvidiaSMI runs nvidia-smi. If it cannot, it adds a finding that says why.
func (f *finder) byNvidiaSMI() nvml.Report {
	none := nvml.Report{Source: "nvidia-smi", Devices: []nvml.Device{}}
	if f.ctx.Err() != nil {
		return none
	}
	smi := f.smi
	if smi == "" {
		if len(f.findings) > 0 { // there is a driver, or it is not known whether there is one
			f.say(job.SeverityWarning, "ranks run on CPUs; where the driver's tools are installed, put the directory of nvidia-smi into PATH",
				"nvidia-smi is not in PATH, and cannot be asked instead")
			return none
		}
		none.NoDriver = true
		if len(f.GPUs) > 0 {
			f.say(job.SeverityWarning, "install the NVIDIA driver, or put the directory of nvidia-smi into PATH",
				"no NVIDIA driver: there is neither gangrun-nvml with a driver nor nvidia-smi in PATH, and yet %d NVIDIA GPUs (%s)", len(f.GPUs), strings.Join(f.GPUs, ", "))
		} else {
			f.say(job.SeverityNote, "ranks run on CPUs; where there are GPUs, install the NVIDIA driver, or put the directory of nvidia-smi into PATH",
				"no NVIDIA driver: nvidia-smi is not in PATH")
		}
		return none
	}
	out, ok := f.child(smi, "-q", "-x")
	if !ok {
		return none
	}
	r, err := ParseQuery(string(out.Stdout))
	switch {
	case err == nil && out.Code != 0:
		hint := "run nvidia-smi and look"
		if out.Code == smiCorrupt {
			hint = "the infoROM of a GPU is corrupt: it works, but NVIDIA replaces such GPUs"
		}
		f.say(job.SeverityWarning, hint, "nvidia-smi -q -x reported everything and %s: %s", outcome(out), warning(out))
	case err != nil:
		var understood bool
		if r, understood = f.failed(smi, out, err); !understood || len(r.Devices) == 0 {
			r.Source, r.Devices = "nvidia-smi", []nvml.Device{}
			return r
		}
	case len(r.Devices) == 0:
		f.noDevices()
		return r
	}
	f.instances(smi, &r)
	f.topo(smi, &r)
	return r
}

// warning returns the text that nvidia-smi prints before or after its report.
func warning(out Output) string {
	_, behind, _ := strings.Cut(string(out.Stdout), "</nvidia_smi_log>")
	before, _, _ := strings.Cut(string(out.Stdout), "<")
	return quoted(behind + "\n" + string(out.Stderr) + "\n" + before)
}

var (
	anyBusID = pattern.New(`[0-9A-Fa-f]{3,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]`)
	aboutGPU = pattern.New(`(?i)device handle|gpu is lost|fallen off the bus`)
)

// lostGPUs returns the errors of nvidia-smi about GPUs that it cannot reach, by bus ID.
func lostGPUs(text string) map[string]string {
	lost := map[string]string{}
	for line := range strings.Lines(text) {
		if !aboutGPU().MatchString(line) {
			continue
		}
		at := anyBusID().FindStringIndex(line)
		if at == nil {
			continue
		}
		if pci, err := nvml.BusID(line[at[0]:at[1]]); err == nil {
			why := strings.Join(strings.Fields(strings.TrimLeft(line[at[1]:], ": ")), " ")
			if why = strings.TrimSuffix(why, "."); why == "" {
				why = strings.TrimSpace(line)
			}
			lost[pci] = strings.ToValidUTF8(why, "?")
		}
	}
	return lost
}

// failed adds a finding about why nvidia-smi printed no report, and finds as much as possible in other ways. It
// returns false if it finds nothing.
func (f *finder) failed(smi string, out Output, parse error) (nvml.Report, bool) {
	text := string(out.Stdout) + "\n" + string(out.Stderr)
	has := func(s string) bool { return strings.Contains(strings.ToLower(text), s) }
	if lost := lostGPUs(text); len(lost) > 0 {
		return f.around(smi, lost), true
	}
	switch {
	case has("driver/library version mismatch"):
		f.say(job.SeverityWarning, "reboot the host, or reload the modules (sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia)",
			"the NVIDIA driver was updated while the old one is loaded: nvidia-smi says %s", printed(out))
	case out.Code == smiNoDriver, has("couldn't communicate with the nvidia driver"):
		f.say(job.SeverityWarning, "load it (sudo modprobe nvidia) and look at dmesg; after an update of the kernel, install the driver again",
			"the NVIDIA driver is not loaded: nvidia-smi says %s", printed(out))
		return nvml.Report{NoDriver: true}, false
	case out.Code == smiNoLibrary, has("libnvidia-ml"):
		f.say(job.SeverityWarning, "install the driver's libraries, or run ldconfig; in a container, start it with the NVIDIA container toolkit",
			"nvidia-smi cannot load NVML: %s", printed(out))
	case has("no devices were found"), out.Code == smiNoSuch:
		f.noDevices()
	case out.Code != 0:
		f.say(job.SeverityWarning, "run nvidia-smi and look; look for NVRM and Xid in dmesg",
			"nvidia-smi -q -x %s and said %s", outcome(out), printed(out))
	default:
		f.say(job.SeverityWarning, "run nvidia-smi -q -x and look", "nvidia-smi -q -x printed no report: %v", parse)
	}
	return nvml.Report{}, false
}

func (f *finder) noDevices() {
	if len(f.GPUs) == 0 { // otherwise missing adds this finding
		f.say(job.SeverityNote, "ranks run on CPUs", "the NVIDIA driver finds no GPU on this host")
	}
}

// around runs nvidia-smi for one GPU after the other, because nvidia-smi reports no GPU if one is lost.
func (f *finder) around(smi string, lost map[string]string) nvml.Report {
	all := slices.Clone(f.GPUs)
	for pci := range lost {
		if !slices.Contains(all, pci) {
			all = append(all, pci)
		}
	}
	slices.Sort(all) // the order in which NVML numbers them
	r := nvml.Report{Source: "nvidia-smi", Devices: []nvml.Device{}}
	hangs := false // a query that hangs once will hang again
	for index, pci := range all {
		if why, is := lost[pci]; is {
			r.Devices = append(r.Devices, nvml.Device{Index: index, PCI: pci, Lost: why})
			continue
		}
		if hangs {
			continue
		}
		out, ok := f.child(smi, "-q", "-x", "-i", pci)
		if !ok {
			hangs = true
			continue
		}
		one, err := ParseQuery(string(out.Stdout))
		if err != nil || len(one.Devices) != 1 {
			f.say(job.SeverityWarning, "run it and look", "nvidia-smi -q -x -i %s reports nothing: it %s and said %s", pci, outcome(out), printed(out))
			continue
		}
		r.Driver, r.CUDA, r.Errors = one.Driver, one.CUDA, one.Errors
		one.Devices[0].Index = index
		r.Devices = append(r.Devices, one.Devices[0])
	}
	if len(f.GPUs) == 0 {
		f.say(job.SeverityWarning, "gangrun looks in /sys/bus/pci for the others", "nvidia-smi reports no GPU while one is lost")
	}
	return r
}

// instances completes the MIG devices, whose names the report does not have.
func (f *finder) instances(smi string, r *nvml.Report) {
	if !slices.ContainsFunc(r.Devices, func(d nvml.Device) bool { return len(d.Instances) > 0 }) {
		return
	}
	out, ok := f.child(smi, "-L")
	if ok && !fillInstances(r.Devices, string(out.Stdout)) {
		f.say(job.SeverityNote, "run nvidia-smi -L and look", "nvidia-smi -L does not report the UUIDs of all MIG devices: the others go by GPU and instance")
	}
}

// topo adds the links between the GPUs. If it cannot find them, the caller still has the distances of sysfs.
func (f *finder) topo(smi string, r *nvml.Report) {
	if slices.ContainsFunc(r.Devices, func(d nvml.Device) bool { return d.Lost != "" }) {
		return // the numbers in the matrix may differ from those in the report
	}
	const rest = "NVLinks are not known; distances are those of /sys"
	out, ok := f.child(smi, "topo", "-m")
	if !ok {
		return
	}
	if out.Code != 0 {
		f.say(job.SeverityWarning, rest, "nvidia-smi topo -m %s and said %s", outcome(out), printed(out))
		return
	}
	devices, links, nics, err := ParseTopo(string(out.Stdout))
	if err == nil && len(devices) != len(r.Devices) {
		err = fmt.Errorf("%d GPUs, where nvidia-smi -q -x reports %d", len(devices), len(r.Devices))
	}
	if err != nil {
		f.say(job.SeverityWarning, rest, "nvidia-smi topo -m cannot be read: %v", err)
		return
	}
	for i, d := range devices {
		r.Devices[i].CPUs, r.Devices[i].NUMA = d.CPUs, d.NUMA
	}
	r.Links, r.NICs = links, nics
}
