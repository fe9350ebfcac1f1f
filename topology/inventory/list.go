package inventory

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Limits on the size of a list of hosts.
const (
	MaxHosts   = 100_000      // hosts in one list
	MaxDevices = 1 << 18      // GPUs in one inventory
	MaxGPUs    = 256          // GPUs of one host
	MaxSlots   = job.MaxRanks // slots of one host
)

// Kind is the form in which a list of hosts was given.
type Kind string

// The kinds of lists. FromEnvironment returns an empty list of the kind None if there is no
// allocation.
const (
	None      Kind = ""
	Flag      Kind = "hosts"     // the value of --hosts
	OpenMPI   Kind = "openmpi"   // a hostfile of Open MPI
	MPICH     Kind = "mpich"     // a machine file of MPICH's hydra
	Plain     Kind = "plain"     // a plain list, with a host on each line
	Nodefile  Kind = "nodefile"  // a list with a line for each slot, as PBS writes it
	Inventory Kind = "inventory" // a YAML inventory
	Slurm     Kind = "slurm"     // the Slurm allocation of this process
	PBS       Kind = "pbs"       // the PBS allocation of this process
	LSF       Kind = "lsf"       // the LSF allocation of this process

	GridEngine  Kind = "gridengine"   // the Grid Engine allocation of this process, in a parallel environment
	OAR         Kind = "oar"          // the OAR allocation of this process
	Flux        Kind = "flux"         // the Flux job or instance of this process
	MPIOperator Kind = "mpi-operator" // the workers of an MPIJob; this process is in the launcher pod of that MPIJob
)

// List is the content of a list of hosts.
type List struct {
	Kind Kind
	// Hosts has each host once, in the order of the list. A host's Address is its name if no
	// address is stated. If the list states a host's slots, the host is Hard (see job.Host).
	// Slots that Slurm has computed, and Flux's cores, do not make a host Hard. A host without
	// slots in the list has 0 slots. Hosts with the same topo file share Links and NICs, so the
	// caller must not modify these.
	Hosts []job.Host
	// Users has the login names that the list states. The keys are the names of the hosts.
	Users map[string]string
	// Notes describes entries that were ignored, or that the user may have meant differently. Each is a
	// sentence without a full stop.
	Notes []string
}

// collector builds a List, and collects the errors in it.
type collector struct {
	source string // the name of the file, flag or variable, for errors
	list   List
	index  map[string]int // index in Hosts by the name in lower case
	lines  []int          // the line on which each host was first
	stated []Line         // the lines of a hostfile, in order
	noted  map[string]bool
	errs   Errors
	full   bool
	last   int // number of lines; an error may be reported for the line after the last one
}

func collect(source string, kind Kind) *collector {
	return &collector{source: source, list: List{Kind: kind}, index: map[string]int{}, noted: map[string]bool{}}
}

// bad adds an error in a line. Line 0 means that there is no line.
func (c *collector) bad(line int, f *fault) {
	if c.enough() {
		return
	}
	if c.last > 0 {
		line = min(line, c.last)
	}
	c.errs = append(c.errs, &Error{Source: c.source, Line: line, Text: f.text, hint: f.hint})
}

// enough reports whether there are so many errors that reading must stop.
func (c *collector) enough() bool { return len(c.errs) >= maxErrors }

// note adds a note about a line. It adds the same text only once.
func (c *collector) note(line int, text string) {
	if c.noted[text] {
		return
	}
	c.noted[text] = true
	if line > 0 {
		text = fmt.Sprintf("%s:%d: %s", c.source, line, text)
	}
	c.list.Notes = append(c.list.Notes, text)
}

// host returns the host with a name. It adds the host if the list does not have it. It returns nil if the list
// is full. It also returns nil if the list has the name with other upper and lower case letters. Both names
// mean the same machine (RFC 4343), but it is not clear which of them the user wants.
func (c *collector) host(line int, name string) (h *job.Host, isNew bool) {
	key := strings.ToLower(name)
	if i, ok := c.index[key]; ok {
		if had := c.list.Hosts[i].Name; had != name {
			c.bad(line, faultf("write the name of a host in the same letters each time", "host %s is host %s%s in other letters", quote(name), quote(had), onLine(c.lines[i])))
			return nil, false
		}
		return &c.list.Hosts[i], false
	}
	if len(c.list.Hosts) >= MaxHosts {
		if !c.full {
			c.full = true
			c.bad(line, faultf("split the list", "there are more than %d hosts", MaxHosts))
		}
		return nil, false
	}
	c.index[key] = len(c.list.Hosts)
	c.lines = append(c.lines, line)
	c.list.Hosts = append(c.list.Hosts, job.Host{Name: name, Address: name})
	return &c.list.Hosts[len(c.list.Hosts)-1], true
}

// onLine returns words that say on which line a host is. Line 0 means that there is no line.
func onLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" on line %d", line)
}

// count adds n slots to those of h. stated is true if the user has stated this number of slots, or has listed
// the host before.
func (c *collector) count(line int, h *job.Host, n int, stated bool) {
	if h.Slots+n > MaxSlots {
		c.bad(line, faultf(fmt.Sprintf("a host may have up to %d slots", MaxSlots), "the slots of %s add up to %d", quote(h.Name), h.Slots+n))
		return
	}
	h.Slots += n
	h.Hard = h.Hard || stated
}

// user records the login name at a host, unless it is "".
func (c *collector) user(line int, host, user string) {
	if user == "" {
		return
	}
	if had := c.list.Users[host]; had != "" && had != user {
		c.bad(line, faultf("name one user for the host", "host %s is given the users %s and %s", quote(host), quote(had), quote(user)))
		return
	}
	if c.list.Users == nil {
		c.list.Users = map[string]string{}
	}
	c.list.Users[host] = user
}

// done returns the list. Hosts without stated slots get 0 slots.
func (c *collector) done(nothing string) (List, error) {
	if len(c.errs) == 0 && len(c.list.Hosts) == 0 {
		c.bad(0, faultf(nothing, "names no host"))
	}
	if err := c.err(); err != nil {
		return List{}, err
	}
	for i := range c.list.Hosts {
		if h := &c.list.Hosts[i]; !h.Hard {
			h.Slots = 0
		}
	}
	return c.list, nil
}

// err returns the errors in the order of the lines, or nil.
func (c *collector) err() error {
	if len(c.errs) == 0 {
		return nil
	}
	if c.enough() {
		return append(c.errs, &Error{Source: c.source, Text: fmt.Sprintf("reading stopped after %d errors", maxErrors)})
	}
	return c.errs
}
