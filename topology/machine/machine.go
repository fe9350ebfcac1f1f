// Package machine looks at the machine that this process runs on: its CPUs and
// NICs by /sys, its GPUs by the driver, and which of them this process was given.
package machine

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
	"github.com/gangrun/gangrun/topology/sysfs"
)

// Machine is what was found.
type Machine struct {
	Kernel   sysfs.Machine
	Driver   nvml.Report
	Findings []job.Finding // without a host: they are of this one
}

// GrantError is that it cannot be found out which GPUs this process was given. It
// must use none then.
type GrantError struct{ Err error }

// Error says what is wrong with the environment.
func (e *GrantError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the environment.
func (e *GrantError) Unwrap() error { return e.Err }

// Look fills h with the hardware of this machine, whose /sys is sys, but for GPUs
// that this process was not given by the environment that lookup knows. Cores are
// its slots where nobody has stated others. The error is ctx's or a *GrantError.
func Look(ctx context.Context, h *job.Host, sys fs.FS, lookup func(string) (string, bool), options probe.Options) (Machine, error) {
	var m Machine
	var err error
	if m.Kernel, err = sysfs.Read(sys); err != nil {
		m.Findings = append(m.Findings, job.Finding{
			Check: probe.Check, Severity: job.SeverityNote, Text: "some of /sys cannot be read, and is not known: " + strings.ReplaceAll(err.Error(), "\n", "; "),
		})
	}
	options.GPUs = m.Kernel.GPUs()
	driver, findings, err := probe.Find(ctx, options)
	if err != nil {
		return Machine{}, err
	}
	m.Driver, m.Findings = driver, append(m.Findings, findings...)
	m.Driver.Fill(h, nil)
	m.Kernel.Fill(h)
	h.Cores = runtime.NumCPU()
	if h.Slots == 0 {
		h.Slots = h.Cores
	}
	grant, err := inventory.Granted(lookup, inventory.ReadFile, h.Name)
	if err != nil {
		return Machine{}, &GrantError{err}
	}
	m.Findings = append(m.Findings, granted(grant, h)...)
	return m, nil
}

// Driven reports whether there is any sign of NVIDIA's driver here, its tool in one
// of the directories of path among them. Where there is none Look finds no GPU, and
// takes its time for that.
func Driven(path string) bool {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, "nvidia-smi")); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	_, errDevice := os.Stat("/dev/nvidiactl")
	_, errDriver := os.Stat("/proc/driver/nvidia")
	return errDevice == nil || errDriver == nil
}

// granted leaves h only the GPUs of a grant, and says so.
func granted(grant inventory.Grant, h *job.Host) []job.Finding {
	left := grant.Apply(h)
	if len(left) == 0 {
		return nil
	}
	var names []string
	for _, index := range left {
		names = append(names, "GPU"+strconv.Itoa(index))
	}
	f := job.Finding{Check: probe.Check, Severity: job.SeverityNote}
	f.Text = fmt.Sprintf("%d GPUs are left alone: by %s this process was not given them", len(left), grant.Source)
	if len(left) <= 16 {
		f.Text = fmt.Sprintf("left alone: %s, which by %s this process was not given", strings.Join(names, " "), grant.Source)
	}
	if len(h.Devices) == 0 {
		f.Severity = job.SeverityWarning
		f.Hint = "ask the batch system for GPUs, or set CUDA_VISIBLE_DEVICES to those that are yours"
		if grant.Kind == inventory.None {
			f.Hint = "unset CUDA_VISIBLE_DEVICES, or set it to the GPUs that are yours"
		}
	}
	return []job.Finding{f}
}
