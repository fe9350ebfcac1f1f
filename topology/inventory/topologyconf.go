package inventory

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
)

// Site is the position of a host in the network.
type Site struct {
	Switch string // the switch to which the host is connected
	Rack   string // the switch above Switch; empty if there is none
}

// Topology reads a topology.conf of Slurm that describes trees of switches. It returns the Site of every node.
// The keys are the names of the nodes. name is the name of the file for errors.
func Topology(name string, text []byte) (map[string]Site, error) {
	text, err := clean(name, text, MaxSize)
	if err != nil {
		return nil, err
	}
	t := tree{collector: collect(name, None), at: map[string]int{}, above: map[string]string{}, leaf: map[string]string{}, lineOf: map[string]int{}}
	var joined strings.Builder // a line with its continuation lines
	begin, number := 0, 0
	for l := range strings.Lines(string(text)) {
		number++
		l, _, _ = strings.Cut(l, "#")
		l, continued := strings.CutSuffix(strings.TrimRight(l, " \t\r\n"), `\`)
		if joined.Len() == 0 {
			begin = number
		}
		joined.WriteString(l + " ")
		if !continued {
			t.line(begin, strings.Fields(joined.String()))
			joined.Reset()
		}
	}
	t.line(begin, strings.Fields(joined.String()))
	t.check()
	if err := t.err(); err != nil {
		return nil, err
	}
	sites := make(map[string]Site, len(t.leaf))
	for node, leaf := range t.leaf {
		sites[node] = Site{Switch: leaf, Rack: t.above[leaf]}
	}
	return sites, nil
}

// Locate returns hosts with Switch and Rack set from sites. It does not change hosts that
// already have a Switch or Rack, or that are not in sites.
func Locate(hosts []job.Host, sites map[string]Site) []job.Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		if h := &hosts[i]; h.Rack == "" && h.Switch == "" {
			h.Rack, h.Switch = sites[h.Name].Rack, sites[h.Name].Switch
		}
	}
	return hosts
}

// tree has what was read from a topology.conf.
type tree struct {
	*collector
	at     map[string]int    // the line of each switch
	order  []string          // the switches
	above  map[string]string // the switch above each switch
	lineOf map[string]int    // the line that states the switch above
	leaf   map[string]string // the leaf switch of each node
}

var switchKeys = []string{"SwitchName", "Nodes", "Switches", "LinkSpeed"}

// line reads one line with its continuation lines.
func (t *tree) line(line int, words []string) {
	if len(words) == 0 || t.enough() {
		return
	}
	values := map[string]string{}
	for _, w := range words {
		key, value, has := strings.Cut(w, "=")
		i := slices.IndexFunc(switchKeys, func(k string) bool { return strings.EqualFold(k, key) })
		switch {
		case strings.EqualFold(key, "include"):
			t.bad(line, faultf("put the included text in its place", "include is not followed"))
			return
		case strings.EqualFold(key, "BlockName") || strings.EqualFold(key, "BlockSizes"):
			t.bad(line, faultf("trees of switches (SwitchName=) are read; racks can be written in the YAML inventory", "topologies of blocks are not read"))
			return
		case i < 0:
			near := suggest.DidYouMean(key, switchKeys)
			hint := ""
			if near == "" {
				hint = "the keys are: " + strings.Join(switchKeys, ", ")
			}
			t.bad(line, faultf(hint, "unknown key %s%s", quote(key), near))
			return
		case !has || strings.Trim(value, `"`) == "":
			t.bad(line, faultf("write "+switchKeys[i]+"=VALUE, without blanks", "%s has no value", switchKeys[i]))
			return
		}
		if _, twice := values[switchKeys[i]]; twice {
			t.bad(line, faultf("write it once", "%s stands twice", switchKeys[i]))
			return
		}
		values[switchKeys[i]] = strings.Trim(value, `"`)
	}
	t.take(line, values["SwitchName"], values["Nodes"], values["Switches"])
}

// take adds a switch with its nodes or switches.
func (t *tree) take(line int, name, nodes, switches string) {
	switch {
	case name == "":
		t.bad(line, faultf("write SwitchName=s1 Nodes=h[1-4]", "the line has no SwitchName"))
		return
	case label("switch", name) != nil || strings.ContainsAny(name, "[],"):
		t.bad(line, faultf("write one name, as in s1", "%s is no name of a switch", quote(name)))
		return
	case t.at[name] > 0:
		t.bad(line, faultf("write each switch on one line", "the switch %s stands on line %d already", quote(name), t.at[name]))
		return
	case (nodes == "") == (switches == ""):
		t.bad(line, faultf("write Nodes= for a leaf switch, Switches= for others", "the switch %s wants either Nodes or Switches", quote(name)))
		return
	}
	t.at[name] = line
	t.order = append(t.order, name)
	if nodes != "" {
		names, bad := expand(nodes, MaxHosts-len(t.leaf))
		if bad != nil {
			t.bad(line, bad)
			return
		}
		for _, n := range names {
			n, bad := hostName(n)
			switch had, again := t.leaf[n]; {
			case bad != nil:
				t.bad(line, bad)
			case again:
				t.bad(line, faultf("name each node under one switch", "the node %s is under the switch %s on line %d already", quote(n), quote(had), t.at[had]))
			default:
				t.leaf[n] = name
			}
		}
		return
	}
	names, bad := expand(switches, MaxHosts-len(t.above))
	if bad != nil {
		t.bad(line, bad)
		return
	}
	for _, n := range names {
		if had, again := t.above[n]; again {
			t.bad(line, faultf("a tree has one switch above each", "the switch %s is under the switch %s on line %d already", quote(n), quote(had), t.lineOf[n]))
			continue
		}
		t.above[n], t.lineOf[n] = name, line
	}
}

// check checks that the switches form one or several trees.
func (t *tree) check() {
	if len(t.errs) > 0 {
		return
	}
	for _, under := range slices.Sorted(maps.Keys(t.above)) {
		if t.at[under] == 0 && !t.enough() {
			t.bad(t.lineOf[under], faultf("write SwitchName="+under+" with its Nodes= or Switches=", "the switch %s has no line of its own%s", quote(under), suggest.DidYouMean(under, t.order[:min(len(t.order), 1000)])))
		}
	}
	seen := map[string]string{} // for each switch, the switch from which a walk has come
	for _, start := range t.order {
		for s := start; s != "" && seen[s] == ""; s = t.above[s] {
			seen[s] = start
			if up := t.above[s]; up != "" && seen[up] == start {
				t.bad(t.lineOf[s], faultf("take it out of one Switches=", "the switch %s is above itself", quote(up)))
				return
			}
		}
	}
	if len(t.leaf) == 0 {
		t.bad(0, faultf("write SwitchName=s1 Nodes=h[1-4]", "names no node"))
	}
}
