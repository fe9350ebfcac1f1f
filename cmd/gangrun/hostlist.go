package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/lease"
	"github.com/gangrun/gangrun/topology/machine"
	"github.com/gangrun/gangrun/topology/nvml"
	"github.com/gangrun/gangrun/topology/probe"
	"github.com/gangrun/gangrun/topology/sysfs"
)

// hostFlags are the flags that say which hosts there are.
func hostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "inventory", Usage: "take hosts and their GPUs from `FILE`, a YAML inventory"},
		&cli.StringFlag{Name: "hosts", Usage: "take the hosts `H1,H2:4`, with slots behind a colon"},
		&cli.StringFlag{Name: "hostfile", Usage: "take the hosts of `FILE`, a hostfile of Open MPI or MPICH, or a plain list"},
	}
}

// hostList is the hosts that a command looks at.
type hostList struct {
	inventory.List
	own *ownMachine // where the list is this machine alone, what it told of itself
}

// ownMachine is what this machine told of itself.
type ownMachine struct {
	kernel   sysfs.Machine
	driver   nvml.Report
	findings []job.Finding
}

// readHosts reads the list of hosts that the flags name; without one it is the
// allocation of the batch system, and outside of every allocation this machine.
func readHosts(c *cli.Context) (hostList, error) {
	list, err := statedHosts(c)
	if err != nil {
		return hostList{}, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	l := hostList{List: list}
	if l.Kind == inventory.None {
		l.Hosts = []job.Host{{Name: thishost.Name(), Address: "127.0.0.1"}}
	}
	if l.Kind != inventory.Inventory && len(l.Hosts) == 1 && len(thishost.New().Among(c.Context, l.Hosts)) == 1 {
		own, err := lookAt(c.Context, &l.Hosts[0], os.DirFS("/sys"), probe.Options{})
		if err != nil {
			return hostList{}, err
		}
		l.own = &own
		if own.findings, err = markHeld(c.Context, &l.Hosts[0], own.findings); err != nil {
			return hostList{}, err
		}
	}
	return l, nil
}

// markHeld marks the GPUs of this machine that other gangs hold, and returns
// findings with what is wrong with the leases.
func markHeld(ctx context.Context, h *job.Host, findings []job.Finding) ([]job.Finding, error) {
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
		if i >= 0 && !held.Idle() { // what runs on it belongs to who holds it
			h.Devices[i].Busy = held.Holder(time.Now())
		}
	}
	for _, text := range l.Warnings {
		findings = append(findings, job.Finding{Check: probe.Check, Severity: job.SeverityWarning, Text: "leases: " + text})
	}
	return findings, nil
}

func statedHosts(c *cli.Context) (inventory.List, error) {
	var given []string
	for _, name := range []string{"inventory", "hosts", "hostfile"} {
		if c.IsSet(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return inventory.List{}, failure.Usage("hosts come from one list: leave out all but one", "%s stand together", strings.Join(given, " and "))
	}
	switch {
	case c.IsSet("hosts"):
		return inventory.Hosts(c.String("hosts"))
	case c.IsSet("hostfile"):
		text, err := readList(c.String("hostfile"))
		if err != nil {
			return inventory.List{}, err
		}
		return inventory.Hostfile(c.String("hostfile"), text)
	case c.IsSet("inventory"):
		text, err := readList(c.String("inventory"))
		if err != nil {
			return inventory.List{}, err
		}
		return inventory.YAML(c.String("inventory"), text, inventory.Files{
			Read: inventory.ReadFile,
			Topo: func(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error) { return probe.ParseTopo(string(text)) },
		})
	}
	return inventory.FromEnvironment(os.LookupEnv, inventory.ReadFile)
}

// readList reads a list of hosts that the user has named.
func readList(path string) ([]byte, error) {
	text, err := readNamed(path, inventory.MaxSize)
	if err != nil {
		return nil, failure.Usage("give the path of a file that can be read", "read the list of hosts: %w", err)
	}
	return text, nil
}

// lookAt fills h with the hardware of this machine, whose /sys is sys.
func lookAt(ctx context.Context, h *job.Host, sys fs.FS, options probe.Options) (ownMachine, error) {
	m, err := machine.Look(ctx, h, sys, os.LookupEnv, options)
	var refused *machine.GrantError
	if errors.As(err, &refused) {
		err = &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return ownMachine{kernel: m.Kernel, driver: m.Driver, findings: m.Findings}, err
}

// tellNotes says on w how the list was read.
func (l hostList) tellNotes(w io.Writer) {
	for _, note := range l.Notes {
		fmt.Fprintf(w, "gangrun: note: %s\n", printable(note))
	}
}

// tell says on w how the list was read, and what was found about this machine.
func (l hostList) tell(w io.Writer) {
	l.tellNotes(w)
	if l.own == nil {
		return
	}
	for _, f := range l.own.findings {
		fmt.Fprintf(w, "gangrun: %s: %s\n", f.Severity, printable(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(w, "gangrun: hint: %s\n", printable(f.Hint))
		}
	}
}
