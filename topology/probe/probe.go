// Package probe finds the GPUs of this host. It runs gangrun-nvml or, if gangrun-nvml cannot run, nvidia-smi.
// It runs these programs as child processes with a time limit, because a driver that hangs blocks every process
// that calls it.
package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/pattern"
	"github.com/gangrun/gangrun/internal/procfs"
	"github.com/gangrun/gangrun/topology/nvml"
)

// Check is the value of job.Finding.Check in the findings that Find returns.
const Check = "gpus"

// Limit is how long Find lets a child process run by default. If no program keeps the driver loaded, the driver
// initialises every GPU for each caller, which takes about 1-2 s for each GPU.
const Limit = 30 * time.Second

// Options says how Find looks for GPUs. The zero value is usable.
type Options struct {
	// NVML is the path of gangrun-nvml. If it is empty, Find looks in the directory of this
	// program and then in Path.
	NVML string
	// Path is a list of directories in which to look for programs; empty means $PATH.
	Path string
	// Limit is how long one child process may run; 0 means the constant Limit.
	Limit time.Duration
	// GPUs are the PCI bus IDs of the NVIDIA GPUs that the kernel sees, as sysfs.Machine.GPUs returns them; nil
	// if unknown. If they are known, Find can report GPUs that the driver does not see. It can also find the
	// other GPUs if one GPU is lost.
	GPUs []string
	// Find sets Hung to true if gangrun-nvml has hung. If Hung is already true, Find does not run gangrun-nvml
	// but nvidia-smi, and returns a note about that. A caller that calls Find repeatedly should pass the same
	// Hung each time, so that it waits only once for a driver that hangs. If Hung is nil, Find always runs
	// gangrun-nvml.
	Hung *atomic.Bool
	// Run runs the child processes; nil means the function Run. A program that reaps all of its
	// child processes needs a Runner of its own.
	Run Runner
	// Owner returns the user of a process, or an empty string. If Owner is nil, Find reads
	// /proc.
	Owner func(pid int) string
}

// Find returns the driver's report on this host's GPUs, and findings about what went wrong. The Host of each
// finding is empty, because all findings are about this host. If the host has no GPUs or no driver, the report
// has no Devices, and a finding gives the reason. Find returns an error only if ctx is done.
func Find(ctx context.Context, o Options) (nvml.Report, []job.Finding, error) {
	f := finder{Options: o, ctx: ctx}
	if f.Path == "" {
		f.Path = os.Getenv("PATH")
	}
	if f.Limit == 0 {
		f.Limit = Limit
	}
	if f.Run == nil {
		f.Run = Run
	}
	if f.Owner == nil {
		f.Owner = owner
	}
	if f.Hung == nil {
		f.Hung = new(atomic.Bool)
	}
	f.smi = lookPath("nvidia-smi", f.Path)
	r, ok := f.byNVML()
	if !ok {
		r = f.byNvidiaSMI()
	}
	if err := ctx.Err(); err != nil {
		return nvml.Report{}, nil, err
	}
	for _, d := range r.Devices {
		for i := range d.Processes {
			if p := &d.Processes[i]; p.User == "" {
				p.User = f.Owner(p.PID)
			}
		}
		if d.Lost != "" {
			f.say(job.SeverityWarning, "look for XID 79 in dmesg; a reboot of the host brings it back, unless it has to be reseated or replaced",
				"GPU %d (%s) is lost: %s; the others are used", d.Index, d.PCI, d.Lost)
		}
	}
	f.missing(r)
	f.twins(&r)
	return r, f.findings, nil
}

type finder struct {
	Options
	ctx      context.Context
	smi      string // path of nvidia-smi, or empty
	findings []job.Finding
}

func (f *finder) say(severity job.Severity, hint, format string, args ...any) {
	f.findings = append(f.findings, job.Finding{Check: Check, Severity: severity, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// byNVML runs gangrun-nvml. It returns false if nvidia-smi must be run instead. It then adds a finding with the
// reason, unless there is no gangrun-nvml or no driver.
func (f *finder) byNVML() (nvml.Report, bool) {
	path := cmp.Or(f.NVML, lookNVML(f.Path))
	if path == "" {
		return nvml.Report{}, false
	}
	rest := ""
	if f.smi != "" {
		rest = "; gangrun asks nvidia-smi instead"
	}
	if f.Hung.Load() {
		f.say(job.SeverityNote, "look for NVRM and Xid in dmesg; a reboot of the host may be needed", "%s hung before and is not asked again%s", path, rest)
		return nvml.Report{}, false
	}
	out, ok := f.child(path)
	if !ok {
		if out.Hung {
			f.Hung.Store(true)
		}
		return nvml.Report{}, false
	}
	const look = "is it the gangrun-nvml of this gangrun? Run it and look"
	var r nvml.Report
	if out.Code != 0 {
		hint := "run it and look"
		switch text := string(out.Stderr); {
		case crash(out) != "":
			hint = "the driver's library may be broken: look for NVRM, Xid and segfault in dmesg, run nvidia-smi, and install the driver again if that crashes too"
		case out.Signalled:
			hint = "somebody or something has killed it: look in dmesg for the kernel's OOM killer"
		case strings.Contains(text, "GLIBC_"):
			hint = "this host's glibc is older than gangrun-nvml wants: remove gangrun-nvml, and gangrun asks nvidia-smi"
		}
		f.say(job.SeverityWarning, hint, "%s %s and said %s%s", path, outcome(out), printed(out), rest)
		return nvml.Report{}, false
	}
	err := json.Unmarshal(out.Stdout, &r)
	switch {
	case err != nil:
		f.say(job.SeverityWarning, look, "%s printed no report: %v: %s%s", path, err, quoted(string(out.Stdout)), rest)
	case r.NoDriver:
	case r.Failed != "":
		f.say(job.SeverityWarning, "run nvidia-smi and look", "NVML cannot be used: %s%s", r.Failed, rest)
	case r.Devices == nil:
		f.say(job.SeverityWarning, look, "%s printed no report: it has no devices, not even none: %s%s", path, quoted(string(out.Stdout)), rest)
	case len(r.Devices) == 0 && r.Errors["devices"] != "":
		f.say(job.SeverityWarning, "inside a container or batch job, ask for GPUs; else run nvidia-smi and look, and look for NVRM and Xid in dmesg",
			"NVML cannot report any GPU: %s%s", r.Errors["devices"], rest)
	default:
		if err := r.Check(); err != nil {
			f.say(job.SeverityWarning, look, "%s printed a report that does not fit together: %v%s", path, err, rest)
			break
		}
		if len(r.Devices) == 0 {
			f.noDevices()
		}
		f.faults(r)
		return r, true
	}
	return nvml.Report{}, false
}

// child runs a program to its end. It returns false if that fails. It then adds a finding, unless ctx has
// ended.
func (f *finder) child(path string, args ...string) (Output, bool) {
	if f.ctx.Err() != nil {
		return Output{}, false
	}
	command := strings.Join(append([]string{path}, args...), " ")
	out, err := f.Run(f.ctx, f.Limit, path, args...)
	switch {
	case f.ctx.Err() != nil:
		return out, false
	case err != nil:
		f.say(job.SeverityWarning, "look at the file's mode and at what file(1) says of it", "%s cannot be started: %v", command, err)
		return out, false
	case out.Stuck:
		f.say(job.SeverityWarning, "the driver hangs in the kernel: look for NVRM and Xid in dmesg; as a rule only a reboot of the host helps",
			"%s has not ended in %v and cannot even be killed; gangrun has left it behind as pid %d", command, f.Limit, out.PID)
		return out, false
	case out.Hung:
		f.say(job.SeverityWarning, "the driver may hang: look for NVRM and Xid in dmesg, and run nvidia-smi; a reboot of the host may be needed",
			"%s had not ended after %v and was killed%s", command, f.Limit, after(out))
		return out, false
	case out.Cut:
		f.say(job.SeverityWarning, "run it and look", "%s printed more than %d MiB, which is not what it prints on a sound host", command, maxOutput>>20)
		return out, false
	}
	return out, true
}

// missing adds a finding about GPUs that the kernel sees and the driver does not report.
func (f *finder) missing(r nvml.Report) {
	if r.NoDriver {
		return // another finding says so
	}
	var not []string
	for _, pci := range f.GPUs {
		if !slices.ContainsFunc(r.Devices, func(d nvml.Device) bool { return d.PCI == pci }) {
			not = append(not, pci)
		}
	}
	switch {
	case len(not) == 0:
	case len(r.Devices) == 0:
		f.say(job.SeverityWarning, "ranks run on CPUs; inside a container or batch job, ask for GPUs; else look for NVRM and Xid in dmesg",
			"the NVIDIA driver reports no GPU, and yet there are %d (%s)", len(not), strings.Join(not, ", "))
	default:
		f.say(job.SeverityWarning, "inside a container or batch job that is as it should be; else look for NVRM and Xid in dmesg",
			"the driver reports %d of %d GPUs; not %s", len(f.GPUs)-len(not), len(f.GPUs), strings.Join(not, ", "))
	}
}

// twins removes GPUs from r whose UUID an earlier GPU has, because ranks get GPUs by their UUIDs.
func (f *finder) twins(r *nvml.Report) {
	first := map[string]int{} // by UUID
	keep := make([]bool, len(r.Devices))
	for i, d := range r.Devices {
		at, is := first[d.UUID]
		if keep[i] = d.UUID == "" || !is; keep[i] {
			first[d.UUID] = i
			continue
		}
		f.say(job.SeverityWarning, "run nvidia-smi -L and look; a reset of the driver or a reboot may help",
			"GPU %d (%s) has the UUID of GPU %d (%s), %s: it is left out", d.Index, d.PCI, r.Devices[at].Index, r.Devices[at].PCI, d.UUID)
	}
	r.Devices = kept(r.Devices, keep)
	for i := range r.Links {
		r.Links[i] = kept(r.Links[i], keep)
	}
	r.Links = kept(r.Links, keep)
	for i := range r.NICs {
		r.NICs[i].Links = kept(r.NICs[i].Links, keep)
	}
}

// kept returns the elements of list whose entry in keep is true. It returns nil for nil.
func kept[T any](list []T, keep []bool) []T {
	i := -1
	return slices.DeleteFunc(list, func(T) bool { i++; return !keep[i] })
}

// lookNVML returns the path of gangrun-nvml. It prefers the directory of this program over those in list. It
// returns "" if there is no gangrun-nvml.
func lookNVML(list string) string {
	if self, err := os.Executable(); err == nil {
		list = filepath.Dir(self) + string(os.PathListSeparator) + list
	}
	return lookPath("gangrun-nvml", list)
}

// lookPath returns the path of a program in a list of directories, or "".
func lookPath(name, list string) string {
	for _, dir := range filepath.SplitList(list) {
		if dir == "" {
			continue // it would mean the working directory
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// owner returns the name of the user of a process. If the user has no name on this host, it returns the number
// of the user.
func owner(pid int) string {
	uid, ok := procfs.UID(pid)
	if !ok {
		return ""
	}
	name := strconv.Itoa(uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return name
}

// outcome describes how a child failed: with which exit status or signal it ended, or that it
// crashed.
func outcome(out Output) string {
	if name := crash(out); name != "" {
		return "crashed (" + name + ")"
	}
	if out.Signalled {
		return "was ended by signal " + syscall.Signal(out.Code-128).String()
	}
	return "ended with status " + strconv.Itoa(out.Code)
}

// crashes has the signals with which a faulty program ends.
var crashes = []syscall.Signal{
	syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP, syscall.SIGSYS,
}

// goCrash matches what the Go runtime prints when its program crashes with a signal. The program then exits
// with status 2.
var goCrash = pattern.New(`(?m)^(?:\[signal (SIG[A-Z]+): |(SIG[A-Z]+): )`)

// crash returns the name of the signal with which a child crashed, or "".
func crash(out Output) string {
	if out.Signalled {
		if signal := syscall.Signal(out.Code - 128); slices.Contains(crashes, signal) {
			return signal.String()
		}
		return ""
	}
	if m := goCrash().FindSubmatch(out.Stderr); out.Code == 2 && m != nil {
		return string(m[1]) + string(m[2])
	}
	return ""
}

// printed quotes the standard error of a child that failed or, if that is empty, its standard output.
func printed(out Output) string {
	if len(strings.TrimSpace(string(out.Stderr))) > 0 {
		return quoted(string(out.Stderr))
	}
	return quoted(string(out.Stdout))
}

// after quotes what a child printed before it hung.
func after(out Output) string {
	if len(out.Stdout)+len(out.Stderr) == 0 {
		return ""
	}
	return "; it had said " + printed(out)
}
