package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/safefile"
	"github.com/gangrun/gangrun/topology/inventory"
)

// jobHosts returns the hosts that a job names or, where it names none, those of
// the batch system's allocation; an empty List is this machine.
func jobHosts(spec job.Spec) (inventory.List, error) {
	list, err := listHosts(spec)
	if err == nil && spec.Network != "" && len(list.Hosts) < 2 {
		list.Notes = append(list.Notes, fmt.Sprintf("network %q changes nothing here: it is for the ranks of several machines", spec.Network))
	}
	return list, err
}

// listHosts is jobHosts without a word about the rest of the job.
func listHosts(spec job.Spec) (list inventory.List, err error) {
	switch {
	case spec.Loopback > 0:
		return list, nil
	case spec.Hosts != "":
		list, err = inventory.Hosts(spec.Hosts)
	case spec.Hostfile != "":
		var text []byte
		if text, err = readList(spec.Hostfile); err == nil {
			list, err = inventory.Hostfile(spec.Hostfile, text)
		}
	case spec.Inventory != "":
		var text []byte
		if text, err = readList(spec.Inventory); err == nil {
			list, err = inventory.YAML(spec.Inventory, text, inventory.Files{Read: inventory.ReadFile, Topo: parseTopo})
		}
	default:
		list, err = inventory.FromEnvironment(os.LookupEnv, inventory.ReadFile)
	}
	if err != nil {
		return list, &failure.Error{Code: failure.CodeUsage, Err: err}
	}
	return list, nil
}

// passing returns a note where the list of hosts is no file that is there for good.
func passing(spec job.Spec) (notes []string) {
	for _, path := range []string{spec.Hostfile, spec.Inventory} {
		if info, err := os.Stat(path); path != "" && err == nil && !info.Mode().IsRegular() {
			notes = append(notes, fmt.Sprintf("%q, the list of hosts, is %s: gangrun attach cannot go on with this run if its controller is killed; give a file for that", path, safefile.Kind(info.Mode())))
		}
	}
	return notes
}

// namedHosts refuses a list of hosts that is given and empty, as by a variable that
// is not set: the job was not meant for this machine.
func namedHosts(c *cli.Context) error {
	for _, name := range []string{"hosts", "hostfile", "inventory"} {
		if c.IsSet(name) && strings.TrimSpace(c.String(name)) == "" {
			return failure.Usage("name hosts, or leave --"+name+" out to use this machine", "--%s names nothing", name)
		}
	}
	return nil
}
