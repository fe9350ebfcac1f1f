package hostview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/plan"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// drawnHosts is the largest number of hosts that a plan shows with a line for each GPU. If there are more hosts, each
// gets one line.
const drawnHosts = 4

// Plan is a placement of a gang that a command shows.
type Plan struct {
	Gang   plan.Gang
	Hosts  []job.Host // all hosts on which the gang could be placed
	Choice topology.Choice
}

// Text prints the plan as text.
func (p Plan) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	gpus := p.Gang.OnGPUs(p.Hosts)
	each := "without GPUs"
	if gpus > 0 {
		each = "of " + text.Count(gpus, "GPU")
	}
	used := p.Choice.Placement.Hosts
	fmt.Fprintf(w, "gang       %s %s: %s\n", text.Count(p.Gang.Ranks, "rank"), each, levelWords(p.Choice, gpus > 0))
	lines(w, "cost", p.Choice.Words())
	switch {
	case gpus == 0:
		p.slots(w)
	case len(used) <= drawnHosts:
		for _, h := range used {
			p.draw(w, h)
		}
	default:
		p.rows(w)
	}
	p.rest(w, gpus > 0)
	lines(w, "why", slices.DeleteFunc(slices.Clone(p.Choice.Why), func(why string) bool {
		return len(used) > drawnHosts && strings.HasPrefix(why, "host ") // the row of the host says the same
	}))
	p.runnerUp(w)
	return w.Flush()
}

// levelWords describes the level of locality of a choice.
func levelWords(c topology.Choice, gpus bool) string {
	l, hosts := c.Level, c.Placement.Hosts
	switch {
	case l == job.LocalityIsland && c.UnknownLinks() > 0:
		return "level island, on one host, though how its GPUs are linked is not known, so that they count as linked alike"
	case l == job.LocalityIsland:
		return "level island, on one host, and as close to each other as GPUs get there"
	case l == job.LocalityHost && gpus:
		return "level host, on one host, though not on its best joined GPUs"
	case l == job.LocalityHost:
		return "level host, on one host"
	case l == job.LocalityRack && hosts[0].Rack == "":
		return fmt.Sprintf("level rack, on %s of which no rack is known, so that they count as one", text.Count(len(hosts), "host"))
	case l == job.LocalityRack:
		return fmt.Sprintf("level rack, on %s of one rack", text.Count(len(hosts), "host"))
	}
	return fmt.Sprintf("level any, on %s of several racks", text.Count(len(hosts), "host"))
}

// lines prints lines in a column. The word stands before the first of them.
func lines(w io.Writer, word string, all []string) {
	for _, one := range all {
		fmt.Fprintf(w, "%-10s %s\n", word, text.Printable(one))
		word = ""
	}
}

// draw prints a host with a line for each of its GPUs.
func (p Plan) draw(w io.Writer, h job.Host) {
	ranks := p.Choice.Placement.On(h.Name)
	by := rankOf(ranks)
	fmt.Fprintf(w, "\nhost %s%s: %s\n", text.Printable(h.Name), where(h), text.Count(len(ranks), "rank"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	labels := topology.Labels(h)
	states, words := gpuStates(h)
	for i, d := range h.Devices {
		r, ok := by[d.UUID]
		if !ok {
			if states[i] == topology.DeviceFree {
				words[i] = "free, not used"
			}
			fmt.Fprintf(t, "  %s\t%s\n", labels[i], words[i])
			continue
		}
		line := fmt.Sprintf("  %s\trank %d", labels[i], r.Rank)
		var beside []string
		if r.CPUs != "" {
			beside = append(beside, "CPUs "+text.Printable(r.CPUs))
		}
		if nics := topology.NICs(h, []string{d.UUID}); len(nics) > 0 {
			beside = append(beside, "NIC "+text.Printable(strings.Join(nics, " ")))
		}
		if len(beside) > 0 {
			line += "\t" + strings.Join(beside, ", ")
		}
		fmt.Fprintln(t, line)
	}
	_ = t.Flush() // the caller reports the errors of w
}

// byHost returns the ranks of each host, in rank order.
func byHost(p job.Placement) map[string][]job.Rank {
	on := map[string][]job.Rank{}
	for _, r := range p.Ranks {
		on[r.Host] = append(on[r.Host], r)
	}
	return on
}

// rankOf maps the UUID of each GPU to its rank.
func rankOf(ranks []job.Rank) map[string]job.Rank {
	by := map[string]job.Rank{}
	for _, r := range ranks {
		for _, uuid := range r.Devices {
			by[uuid] = r
		}
	}
	return by
}

// where describes the place of a host, as in " in rack r1, switch s1".
func where(h job.Host) string {
	switch {
	case h.Rack != "" && h.Switch != "":
		return " in rack " + text.Printable(h.Rack) + ", switch " + text.Printable(h.Switch)
	case h.Rack != "":
		return " in rack " + text.Printable(h.Rack)
	case h.Switch != "":
		return " at switch " + text.Printable(h.Switch)
	}
	return ""
}

// rows prints a line for each host.
func (p Plan) rows(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tRACK\tSWITCH\tRANK OF EACH GPU (. free, # busy, ! sick, - cut into MIG instances)")
	on, width := byHost(p.Choice.Placement), len(strconv.Itoa(len(p.Choice.Placement.Ranks)-1))
	for _, h := range p.Choice.Placement.Hosts {
		by := rankOf(on[h.Name])
		states, _ := gpuStates(h)
		var cells []string
		for i, d := range h.Devices {
			cell := [...]string{topology.DeviceFree: ".", topology.DeviceBusy: "#", topology.DeviceSick: "!", topology.DeviceCut: "-"}[states[i]]
			if r, ok := by[d.UUID]; ok {
				cell = strconv.Itoa(r.Rank)
			}
			cells = append(cells, fmt.Sprintf("%*s", width, cell))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", text.Printable(h.Name), text.Printable(h.Rack), text.Printable(h.Switch), strings.Join(cells, " "))
	}
	_ = t.Flush()
}

// slots prints the hosts of a gang that has no GPUs.
func (p Plan) slots(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	on := byHost(p.Choice.Placement)
	for _, h := range p.Choice.Placement.Hosts {
		var ranks []int
		for _, r := range on[h.Name] {
			ranks = append(ranks, r.Rank)
		}
		word := "ranks"
		if len(ranks) == 1 {
			word = "rank"
		}
		kind := ""
		if h.Hard {
			kind = " at most"
		}
		fmt.Fprintf(t, "host %s%s\t%s %s\t%s%s\n", text.Printable(h.Name), where(h), word, text.Spans(ranks, 0), text.Count(h.Slots, "slot"), kind)
	}
	_ = t.Flush()
}

// rest names the hosts that the gang does not use.
func (p Plan) rest(w io.Writer, gpus bool) {
	used := map[string]bool{}
	for _, h := range p.Choice.Placement.Hosts {
		used[h.Name] = true
	}
	var names []string
	for _, h := range p.Hosts {
		switch {
		case used[h.Name]:
		case gpus:
			states, _ := gpuStates(h)
			n := tally(states)
			has := "no GPUs known"
			if all := len(states) - n[topology.DeviceCut]; all > 0 {
				has = fmt.Sprintf("%d of %s free", n[topology.DeviceFree], text.Count(all, "GPU"))
			}
			names = append(names, fmt.Sprintf("%s (%s)", text.Printable(h.Name), has))
		default:
			names = append(names, text.Printable(h.Name))
		}
	}
	fmt.Fprintln(w)
	if len(names) > 0 {
		fmt.Fprintf(w, "not used   %s\n", text.Some(names, 6))
	}
}

// tally counts devices by their state.
func tally(states []topology.DeviceState) [topology.DeviceCut + 1]int {
	var n [topology.DeviceCut + 1]int
	for _, s := range states {
		n[s]++
	}
	return n
}

// runnerUp prints the second-best placement and its cost.
func (p Plan) runnerUp(w io.Writer) {
	o := p.Choice.RunnerUp
	if o == nil {
		return
	}
	fmt.Fprintf(w, "runner-up  level %s, on %s\n", o.Level, onWords(o.Placement))
	costs := o.Why
	if len(costs) == 0 {
		costs = []string{"the same"}
	}
	lines(w, "  costs", costs)
}

// onWords names the hosts of a placement and the GPUs on them.
func onWords(p job.Placement) string {
	var places []string
	on := byHost(p)
	for _, h := range p.Hosts {
		by := rankOf(on[h.Name])
		var gpus []string
		for i, label := range topology.Labels(h) {
			if _, ok := by[h.Devices[i].UUID]; ok {
				gpus = append(gpus, label)
			}
		}
		all := strings.Join(gpus, " ")
		if len(gpus) == len(h.Devices) && len(gpus) > 1 {
			all = fmt.Sprintf("all %d GPUs", len(gpus))
		}
		places = append(places, fmt.Sprintf("%s (%s)", text.Printable(h.Name), all))
	}
	return text.Some(places, 6)
}
