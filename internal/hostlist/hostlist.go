// Package hostlist reads the list of hosts that a user has given, on a command line or in a job file, and looks at the
// hardware of this machine if the list has only this machine.
package hostlist

import (
	"fmt"
	"os"
	"strings"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/namedfile"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/probe"
)

// Source says where a list of hosts comes from. At most one field is set. If none is set, the
// list is the allocation of the batch system.
type Source struct {
	Hosts     string // the list itself, as in "h1,h2:4"
	Hostfile  string // path of a hostfile
	Inventory string // path of a YAML inventory
}

// Of returns the source that a job names.
func Of(spec job.Spec) Source {
	return Source{Hosts: spec.Hosts, Hostfile: spec.Hostfile, Inventory: spec.Inventory}
}

// Read reads the list. Its kind is inventory.None if the user has named no hosts and no batch
// system has allocated any. Errors are usage errors.
func (s Source) Read() (inventory.List, error) {
	list, err := s.read()
	if err != nil {
		return list, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return list, nil
}

func (s Source) read() (inventory.List, error) {
	switch {
	case s.Hosts != "":
		return inventory.Hosts(s.Hosts)
	case s.Hostfile != "":
		text, err := readFile(s.Hostfile)
		if err != nil {
			return inventory.List{}, err
		}
		return inventory.Hostfile(s.Hostfile, text)
	case s.Inventory != "":
		text, err := readFile(s.Inventory)
		if err != nil {
			return inventory.List{}, err
		}
		return inventory.YAML(s.Inventory, text, inventory.Files{
			Read: inventory.ReadFile,
			Topo: func(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error) { return probe.ParseTopo(string(text)) },
		})
	}
	return inventory.FromEnvironment(os.LookupEnv, inventory.ReadFile, inventory.Output)
}

// readFile reads a list of hosts that the user has named.
func readFile(path string) ([]byte, error) {
	text, err := namedfile.Read(path, inventory.MaxSize)
	if err != nil {
		return nil, failure.Usage("give the path of a file that can be read", "read the list of hosts: %w", err)
	}
	return text, nil
}

// ForJob returns the hosts that a job names. If the job names none, ForJob returns the hosts of the batch system's
// allocation. An empty list means this machine, or the simulated hosts of spec.Loopback.
func ForJob(spec job.Spec) (inventory.List, error) {
	var list inventory.List
	if spec.Loopback == 0 {
		var err error
		if list, err = Of(spec).Read(); err != nil {
			return list, err
		}
	}
	if spec.Network != "" && len(list.Hosts) < 2 {
		list.Notes = append(list.Notes, fmt.Sprintf("network %q changes nothing here: it is for the ranks of several machines", spec.Network))
	}
	return list, nil
}

// PipeNotes returns a note if the list is read from a pipe. A process that takes the run over
// could not read such a list again.
func (s Source) PipeNotes() (notes []string) {
	for _, path := range []string{s.Hostfile, s.Inventory} {
		if info, err := os.Stat(path); path != "" && err == nil && !info.Mode().IsRegular() {
			notes = append(notes, fmt.Sprintf("%q, the list of hosts, is %s: gangrun attach cannot go on with this run if its controller is killed; give a file for that", path, safefile.Kind(info.Mode())))
		}
	}
	return notes
}

// FromFlags returns the source that the flags --inventory, --hosts and --hostfile name. flagValue
// returns the value of a flag, and whether the user has set the flag. Two of these flags together,
// or an empty value, are a usage error.
func FromFlags(flagValue func(name string) (value string, ok bool)) (Source, error) {
	var s Source
	var names []string
	for _, flag := range []struct {
		name string
		to   *string
	}{{"inventory", &s.Inventory}, {"hosts", &s.Hosts}, {"hostfile", &s.Hostfile}} {
		if value, ok := flagValue(flag.name); ok {
			if strings.TrimSpace(value) == "" { // perhaps from an unset variable
				return Source{}, failure.Usage("name hosts, or leave --"+flag.name+" out to use this machine", "--%s names nothing", flag.name)
			}
			*flag.to = value
			names = append(names, "--"+flag.name)
		}
	}
	if len(names) > 1 {
		return Source{}, failure.Usage("hosts come from one list: leave out all but one", "%s stand together", strings.Join(names, " and "))
	}
	return s, nil
}
