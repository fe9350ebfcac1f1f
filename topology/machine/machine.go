// Package machine finds the hardware of this machine, and which GPUs this process may use. It
// reads CPUs and NICs from /sys, and asks the driver for GPUs.
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

// Machine is what the kernel and the driver report about this machine.
type Machine struct {
	Kernel   sysfs.Machine
	Driver   nvml.Report
	Findings []job.Finding // the Host of each is empty, because all are about this machine
}

// GrantError reports that Look cannot find out which GPUs were given to this process. The
// process must then use none.
type GrantError struct{ Err error }

// Error implements error.
func (e *GrantError) Error() string { return e.Err.Error() }

// Unwrap returns the error about the environment.
func (e *GrantError) Unwrap() error { return e.Err }

// Look finds the hardware of this machine and sets it in h. sys is the machine's /sys. lookup
// reads the environment, as os.LookupEnv does. If the environment gives only some GPUs to this
// process, Look leaves out the others. If h has no slots, Look sets them to the number of
// cores. The error is that of ctx or a *GrantError.
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

// Driven reports whether this machine has any sign of NVIDIA's driver, such as nvidia-smi in one of the
// directories of path. If it returns false, Look would find no GPUs, but would spend time on the search.
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

// granted removes the GPUs that are not in the grant from h, and returns findings about
// them.
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
