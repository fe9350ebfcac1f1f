package inventory

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/yamldoc"
)

// Files has the functions by which YAML reads and parses the files that an inventory names.
type Files struct {
	// Read returns a file's text, as ReadFile does. YAML calls it with paths that are absolute
	// or start with the directory of the inventory.
	Read func(path string) ([]byte, error)
	// Topo parses the output of "nvidia-smi topo -m": the GPUs, the links between them, and
	// the NICs. UUIDs may be empty.
	Topo func(text []byte) ([]job.Device, [][]job.Link, []job.NIC, error)
}

// what is the name of the file's kind, for errors in its YAML.
const what = "an inventory"

// YAML parses text, the text of one of gangrun's YAML inventories. name is the path of the
// file. If a topo file has no UUID for a GPU, the UUID is GPU followed by the index, as in
// GPU0. Busy is set for GPUs that the inventory lists as busy.
func YAML(name string, text []byte, files Files) (List, error) {
	root, wrong := yamldoc.Parse(text, what, MaxYAML)
	if wrong != nil {
		return List{}, one(name, wrong.Line, &fault{wrong.Text, wrong.Hint})
	}
	if root != nil {
		root = yamldoc.Follow(root)
	}
	y := yamlReader{collector: collect(name, Inventory), files: files, machines: map[string]*machine{}, addresses: map[string]int{}}
	y.last = bytes.Count(text, []byte("\n")) + 1
	yamldoc.UnknownTags(root, func(n *yaml.Node) {
		if !y.enough() {
			y.bad(n.Line, faultf("take the tag away", "the tag %q is not allowed here in %s", n.Tag, what))
		}
	})
	y.root(root)
	if len(y.errs) > 0 || len(y.list.Hosts) == 0 {
		return y.done("write hosts: and below it - name: h1")
	}
	return y.list, nil
}

// yamlReader reads the document. It descends only to the keys that it knows, so an alias cannot make it run in
// a circle.
type yamlReader struct {
	*collector
	files     Files
	machines  map[string]*machine // by path
	addresses map[string]int      // index in Hosts by sameAddress
	devices   int                 // number of devices of all hosts
}

// root reads the document.
func (y *yamlReader) root(n *yaml.Node) {
	if n == nil {
		return
	}
	entries, ok := y.mapping(n, "the inventory", []string{"hosts"})
	if !ok {
		return
	}
	hosts, ok := entries["hosts"]
	if !ok {
		return
	}
	if hosts.Kind != yaml.SequenceNode {
		y.wants(hosts, "hosts", "a list", "write below hosts: - name: h1")
		return
	}
	for _, item := range hosts.Content {
		if y.enough() || y.full {
			return
		}
		y.host(item)
	}
}

var hostKeys = []string{"name", "address", "slots", "rack", "switch", "topo", "gpus", "busy"}

// host reads one item of the list of hosts.
func (y *yamlReader) host(n *yaml.Node) {
	line := n.Line
	keys, ok := y.mapping(yamldoc.Follow(n), "a host", hostKeys)
	if !ok {
		return
	}
	before := len(y.errs)
	if keys["name"] == nil {
		y.bad(line, faultf("write name: h1, or a node list as name: h[01-16]", "the host has no name"))
	}
	names := y.names(keys["name"], "name")
	addresses := y.names(keys["address"], "address")
	if addresses != nil && len(addresses) != len(names) && len(y.errs) == before {
		y.bad(keys["address"].Line, faultf("an address for each host can be written as a node list, as in 10.0.0.[1-16]", "address is %d addresses for %d hosts", len(addresses), len(names)))
	}
	h := job.Host{Rack: y.label(keys["rack"], "rack"), Switch: y.label(keys["switch"], "switch")}
	if slots := keys["slots"]; slots != nil {
		h.Slots, h.Hard = y.number(slots, "slots", MaxSlots), true
	}
	m := y.machine(keys["topo"], keys["gpus"])
	busy := y.busy(keys["busy"], m)
	if len(y.errs) > before {
		return
	}
	for i, name := range names {
		if y.devices += len(m.devices); y.devices > MaxDevices {
			y.full = true
			y.bad(line, faultf("split the inventory", "there are more than %d GPUs", MaxDevices))
			return
		}
		at, isNew := y.collector.host(line, name)
		if at == nil {
			return
		}
		if !isNew {
			y.bad(line, faultf("write each host once", "host %s stands on line %d already", quote(name), y.lines[y.index[strings.ToLower(name)]]))
			return
		}
		host := h
		host.Name, host.Address = name, name
		if addresses != nil {
			host.Address = addresses[i]
		}
		key := sameAddress(host.Address)
		if other, ok := y.addresses[key]; ok {
			if keys["address"] != nil {
				line = keys["address"].Line
			}
			y.bad(line, faultf("write each machine once, or the address of each", "host %s has the address %s, as host %s%s has", quote(name), quote(host.Address), quote(y.list.Hosts[other].Name), onLine(y.lines[other])))
			return
		}
		y.addresses[key] = y.index[strings.ToLower(name)]
		host.Devices, host.Links, host.NICs = slices.Clone(m.devices), m.links, m.nics
		for d := range host.Devices {
			if slices.Contains(busy, host.Devices[d].Index) {
				host.Devices[d].Busy = fmt.Sprintf("busy by %s:%d", y.source, keys["busy"].Line)
			}
		}
		*at = host
	}
}

// mapping returns the values of a mapping by their keys. It follows aliases.
func (y *yamlReader) mapping(n *yaml.Node, what string, known []string) (map[string]*yaml.Node, bool) {
	if n.Kind != yaml.MappingNode {
		y.wants(n, what, "a mapping", "the keys are: "+strings.Join(known, ", "))
		return nil, false
	}
	out := map[string]*yaml.Node{}
	yamldoc.Entries(n, "an inventory", func(key string, k, v *yaml.Node) {
		if y.enough() {
			return
		}
		if !slices.Contains(known, key) {
			near, hint := suggest.DidYouMean(key, known), "the keys of "+what+" are: "+strings.Join(known, ", ")
			if near != "" {
				hint = ""
			}
			y.bad(k.Line, faultf(hint, "unknown key %s%s", quote(key), near))
			return
		}
		value := *yamldoc.Follow(v)
		value.Line = v.Line // the line where the alias is used, not where the anchor is
		out[key] = &value
	}, func(at *yaml.Node, bad *yamldoc.Error) {
		if !y.enough() {
			y.bad(at.Line, &fault{bad.Text, bad.Hint})
		}
	})
	return out, true
}

// scalar returns the text of a scalar. Its second result is false if the value is no scalar.
func (y *yamlReader) scalar(n *yaml.Node, key, wants string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Tag == "!!binary" || n.Value == "" {
		y.wants(n, key, wants, "write "+key+": with "+wants+" behind it")
		return "", false
	}
	return n.Value, true
}

func (y *yamlReader) wants(n *yaml.Node, key, wants, hint string) {
	stood := "nothing"
	if n.Value != "" {
		stood = quote(n.Value)
	}
	y.bad(n.Line, faultf(hint, "%s wants %s, not %s", key, wants, yamldoc.Kind(n, stood)))
}

// names reads a name or a node list. It returns nil if there is none.
func (y *yamlReader) names(n *yaml.Node, key string) []string {
	if n == nil {
		return nil
	}
	text, ok := y.scalar(n, key, "a name, or a node list such as h[01-16]")
	if !ok {
		return nil
	}
	names := []string{text}
	if !strings.Contains(text, ":") {
		var bad *fault
		if names, bad = expand(text, MaxHosts); bad != nil {
			y.bad(n.Line, bad)
			return nil
		}
	}
	for i, name := range names {
		name, bad := hostName(name)
		if bad != nil {
			y.bad(n.Line, bad)
			return nil
		}
		names[i] = name
	}
	return names
}

func (y *yamlReader) label(n *yaml.Node, key string) string {
	if n == nil {
		return ""
	}
	text, ok := y.scalar(n, key, "a name")
	if !ok {
		return ""
	}
	if bad := label(key, text); bad != nil {
		y.bad(n.Line, bad)
	}
	return text
}

func (y *yamlReader) number(n *yaml.Node, key string, most int) int {
	text, ok := y.scalar(n, key, "a whole number")
	if !ok {
		return 0
	}
	out, bad := number(key, text, most)
	if bad != nil {
		y.bad(n.Line, &fault{bad.text, "write a whole number from 1 to " + strconv.Itoa(most)})
	}
	return out
}

// busy reads the indices of GPUs that are in use.
func (y *yamlReader) busy(n *yaml.Node, m *machine) []int {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		y.wants(n, "busy", "a list of indices of GPUs", "write busy: [0, 3]")
		return nil
	}
	if len(n.Content) > MaxGPUs {
		y.bad(n.Line, faultf("write each index once", "busy has %d indices, but a host has at most %d GPUs", len(n.Content), MaxGPUs))
		return nil
	}
	var out []int
	for _, item := range n.Content {
		v := yamldoc.Follow(item)
		text, ok := "", v.Kind == yaml.ScalarNode && v.Tag != "!!null"
		if !ok {
			y.wants(v, "an item of busy", "the index of a GPU", "write busy: [0, 3]")
			continue
		}
		text = v.Value
		i, err := strconv.Atoi(text)
		has := func(d job.Device) bool { return d.Index == i }
		switch {
		case err != nil || strconv.Itoa(i) != text || i < 0:
			y.bad(item.Line, faultf("write busy: [0, 3]", "busy has %s, which is no index of a GPU", quote(text)))
		case slices.Contains(out, i):
			y.bad(item.Line, faultf("write each index once", "busy has %d twice", i))
		case !m.failed && !slices.ContainsFunc(m.devices, has):
			y.bad(item.Line, faultf("say what GPUs the host has with topo: FILE or gpus: N; indices begin with 0", "busy has %d, but the host has %d GPUs", i, len(m.devices)))
		default:
			out = append(out, i)
		}
	}
	return out
}

// sameAddress returns a text that is the same for all forms of an address.
func sameAddress(address string) string {
	if a, err := netip.ParseAddr(address); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(address)
}
