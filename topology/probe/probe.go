// Package probe finds the GPUs of this host: by gangrun-nvml where it can run,
// else by nvidia-smi. Both are children with a time limit, since a driver that
// hangs takes whoever asks it along.
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
	"syscall"
	"time"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/nvml"
)

// Check is the code that Find gives its findings.
const Check = "gpus"

// Limit is how long Find lets a child run unless told otherwise. A driver that
// no program keeps loaded sets up each GPU anew for every caller, which takes
// some 1-2 s a GPU.
const Limit = 30 * time.Second

// Options say where Find looks; the zero value is this host.
type Options struct {
	// NVML is the path of gangrun-nvml. Empty: it is looked for beside the program
	// that runs, then in Path.
	NVML string
	// Path is the list of directories that programs are looked for in; empty is $PATH.
	Path string
	// Limit is how long one child may run; 0 is the constant Limit.
	Limit time.Duration
	// GPUs are the PCI bus ids of the NVIDIA GPUs that the kernel sees, as
	// sysfs.Machine.GPUs gives them; nil is not known. With it, GPUs that the driver
	// does not tell of are missed, and one that is lost does not hide the others.
	GPUs []string
	// Run runs the children; nil is Run. A program that reaps all of its children
	// itself must start them itself.
	Run Runner
	// Owner returns who runs a process, empty where it cannot be told; nil reads /proc.
	Owner func(pid int) string
}

// Find returns what the driver tells of this host's GPUs, and what is to be said
// about how it did. Hosts of findings are empty: they are of this host. Without
// GPUs or without a driver the report has no Devices, and a finding says why. An
// error is that ctx ended.
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
	return r, f.findings, nil
}

type finder struct {
	Options
	ctx      context.Context
	findings []job.Finding
}

func (f *finder) say(severity job.Severity, hint, format string, args ...any) {
	f.findings = append(f.findings, job.Finding{Check: Check, Severity: severity, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// byNVML asks gangrun-nvml; it is false where nvidia-smi is to be asked instead.
func (f *finder) byNVML() (nvml.Report, bool) {
	path := cmp.Or(f.NVML, lookNVML(f.Path))
	if path == "" {
		return nvml.Report{}, false
	}
	const rest = "gangrun asks nvidia-smi instead"
	out, ok := f.child(path)
	if !ok {
		return nvml.Report{}, false
	}
	var r nvml.Report
	if out.Code != 0 {
		f.say(job.SeverityWarning, "where its glibc is older than gangrun-nvml wants, remove gangrun-nvml: "+rest,
			"%s ended with %s and said %s; %s", path, status(out), said(out), rest)
		return r, false
	}
	if err := json.Unmarshal(out.Stdout, &r); err != nil {
		f.say(job.SeverityWarning, "is it the gangrun-nvml of this gangrun? Run it and look", "%s printed no report: %v: %s; %s", path, err, quoted(string(out.Stdout)), rest)
		return nvml.Report{}, false
	}
	if err := r.Check(); err != nil {
		f.say(job.SeverityWarning, "is it the gangrun-nvml of this gangrun? Run it and look", "%s printed a report that does not fit together: %v; %s", path, err, rest)
		return nvml.Report{}, false
	}
	if r.NoDriver || r.Failed != "" {
		if !r.NoDriver {
			f.say(job.SeverityWarning, "run nvidia-smi and look", "NVML cannot be used: %s; %s", r.Failed, rest)
		}
		return nvml.Report{}, false
	}
	return r, true
}

// child runs a program to its end and says what kept it from getting there.
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

// missing tells of GPUs that the kernel sees and the driver does not tell of.
func (f *finder) missing(r nvml.Report) {
	if len(r.Devices) == 0 {
		return // said already, and why
	}
	var not []string
	for _, pci := range f.GPUs {
		if !slices.ContainsFunc(r.Devices, func(d nvml.Device) bool { return d.PCI == pci }) {
			not = append(not, pci)
		}
	}
	if len(not) > 0 {
		f.say(job.SeverityWarning, "inside a container or batch job that is as it should be; else look for NVRM and Xid in dmesg",
			"the driver tells of %d of %d GPUs; not of %s", len(r.Devices), len(f.GPUs), strings.Join(not, ", "))
	}
}

// lookNVML returns the path of the gangrun-nvml beside the program that runs, else
// of one in a list of directories, or empty.
func lookNVML(list string) string {
	if self, err := os.Executable(); err == nil {
		list = filepath.Dir(self) + string(os.PathListSeparator) + list
	}
	return lookPath("gangrun-nvml", list)
}

// lookPath returns the path of a program in a list of directories, or empty.
func lookPath(name, list string) string {
	for _, dir := range filepath.SplitList(list) {
		if dir == "" {
			continue // would be the working directory
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// owner returns the name of who runs a process, or the number of who has no name here.
func owner(pid int) string {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	uid := strconv.FormatUint(uint64(stat.Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}

// status is how a child ended, in words.
func status(out Output) string {
	if out.Code > 128 && out.Signalled {
		return "signal " + syscall.Signal(out.Code-128).String()
	}
	return "status " + strconv.Itoa(out.Code)
}

// said is what a child said that ended badly.
func said(out Output) string {
	if len(strings.TrimSpace(string(out.Stderr))) > 0 {
		return quoted(string(out.Stderr))
	}
	return quoted(string(out.Stdout))
}

// after is what a child that hung said before.
func after(out Output) string {
	if len(out.Stdout)+len(out.Stderr) == 0 {
		return ""
	}
	return "; it had said " + said(out)
}
