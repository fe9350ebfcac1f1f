package hostlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/lease"
	"github.com/gangrun/gangrun/topology/machine"
	"github.com/gangrun/gangrun/topology/probe"
)

// List is the list of hosts for which a command was started.
type List struct {
	inventory.List
	Own *machine.Machine // the hardware of this machine; nil if the list has other hosts
}

// Look reads a list of hosts. If the source has none, the list is this machine. If the list is
// only this machine, and is not an inventory, Look adds the GPUs and slots of the machine, and
// marks the GPUs that other gangs hold as busy.
func Look(ctx context.Context, from Source) (List, error) {
	list, err := from.Read()
	if err != nil {
		return List{}, err
	}
	l := List{List: list}
	if l.Kind == inventory.None {
		l.Hosts = []job.Host{{Name: thishost.Name(), Address: "127.0.0.1"}}
	}
	if l.Kind != inventory.Inventory && len(l.Hosts) == 1 && len(thishost.New().Among(ctx, l.Hosts)) == 1 {
		own, err := LookAt(ctx, &l.Hosts[0], os.DirFS("/sys"), probe.Options{})
		if err != nil {
			return List{}, err
		}
		if own.Findings, err = MarkHeld(ctx, &l.Hosts[0], own.Findings); err != nil {
			return List{}, err
		}
		l.Own = &own
	}
	return l, nil
}

// MarkHeld marks those GPUs of this machine as busy that other gangs hold. It returns the findings, with a warning for
// each problem with the leases.
func MarkHeld(ctx context.Context, h *job.Host, findings []job.Finding) ([]job.Finding, error) {
	if len(h.Devices) == 0 {
		return findings, nil
	}
	space, err := lease.Open(os.Getenv(lease.Env), "")
	var l lease.Listing
	if err == nil {
		l, err = space.List(ctx)
	}
	if ctx.Err() != nil {
		return findings, ctx.Err()
	}
	if err != nil {
		return append(findings, job.Finding{Check: probe.Check, Severity: job.SeverityWarning, Text: "who holds GPUs cannot be read: " + err.Error()}), nil
	}
	for _, held := range l.Leases {
		i := slices.IndexFunc(h.Devices, func(d job.Device) bool { return d.UUID == held.Device })
		if i >= 0 && !held.Idle() { // the holder explains more than the processes on the GPU
			h.Devices[i].Busy = held.Holder(time.Now())
		}
	}
	for _, text := range l.Warnings {
		findings = append(findings, job.Finding{Check: probe.Check, Severity: job.SeverityWarning, Text: "leases: " + text})
	}
	return findings, nil
}

// LookAt fills h with the hardware of this machine. sys is the directory /sys. If the batch
// system's variables about granted GPUs are wrong, the error is a usage error.
func LookAt(ctx context.Context, h *job.Host, sys fs.FS, options probe.Options) (machine.Machine, error) {
	m, err := machine.Look(ctx, h, sys, os.LookupEnv, options)
	var refused *machine.GrantError
	if errors.As(err, &refused) {
		err = &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return m, err
}

// PrintNotes writes notes to w about how the list was read.
func (l List) PrintNotes(w io.Writer) {
	for _, note := range l.Notes {
		fmt.Fprintf(w, "gangrun: note: %s\n", text.Printable(note))
	}
}

// Print writes notes to w about how the list was read, and what was found on this machine.
func (l List) Print(w io.Writer) {
	l.PrintNotes(w)
	if l.Own == nil {
		return
	}
	for _, f := range l.Own.Findings {
		fmt.Fprintf(w, "gangrun: %s: %s\n", f.Severity, text.Printable(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(w, "gangrun: hint: %s\n", text.Printable(f.Hint))
		}
	}
}
