package hostview

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/machine"
)

// Text prints the hosts of l as text.
func Text(to io.Writer, l hostlist.List) error {
	w := bufio.NewWriter(to)
	if len(l.Hosts) == 1 {
		hostText(w, l.Hosts[0], l.Own)
	} else {
		racksText(w, l.Hosts)
	}
	return w.Flush()
}

// racksText prints hosts by rack and switch, with a line for each host.
func racksText(w io.Writer, hosts []job.Host) {
	for _, r := range byRack(hosts) {
		if r.name == "" {
			fmt.Fprintln(w, "rack not known")
		} else {
			fmt.Fprintf(w, "rack %s\n", text.Printable(r.name))
		}
		for _, s := range r.switches {
			if s.name == "" {
				fmt.Fprintln(w, "  switch not known")
			} else {
				fmt.Fprintf(w, "  switch %s\n", text.Printable(s.name))
			}
			t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, h := range s.hosts {
				line := []string{gpuCount(h)}
				if text := islandText(h); text != "" {
					line = append(line, text)
				}
				if len(h.NICs) > 0 {
					line = append(line, text.Count(len(h.NICs), "NIC"))
				}
				if h.Hard {
					line = append(line, text.Count(h.Slots, "slot"))
				}
				fmt.Fprintf(t, "    %s\t%s\n", text.Printable(h.Name), strings.Join(line, "; "))
			}
			_ = t.Flush() // the caller reports the errors of w
		}
	}
	free, all := 0, 0
	for _, h := range hosts {
		states, _ := gpuStates(h)
		n := tally(states)
		free, all = free+n[topology.DeviceFree], all+len(states)-n[topology.DeviceCut]
	}
	fmt.Fprintf(w, "%s, %s, %d free\n", text.Count(len(hosts), "host"), text.Count(all, "GPU"), free)
}

// hostText prints one host: a matrix of its GPUs, and what else is known.
func hostText(w io.Writer, h job.Host, own *machine.Machine) {
	fmt.Fprintf(w, "host %s%s: %s\n", text.Printable(h.Name), where(h), gpuCount(h))
	if own != nil {
		ownText(w, h, own)
	}
	if len(h.Devices) == 0 {
		if own == nil {
			fmt.Fprintln(w, `the list tells of no GPUs of it; an inventory does: save "nvidia-smi topo -m" of the host, and write topo: FILE (docs/inventory.md)`)
		}
		return
	}
	fmt.Fprintln(w)
	matrix(w, h)
	islandLines(w, h)
	legend(w, h)
}

// ownText prints what is known of this machine besides its GPUs.
func ownText(w io.Writer, h job.Host, m *machine.Machine) {
	if m.Driver.Driver != "" {
		fmt.Fprintf(w, "driver  %s, CUDA up to %s, told by %s\n", text.Printable(m.Driver.Driver), cmp.Or(text.Printable(m.Driver.CUDA), "not known"), m.Driver.Source)
	}
	if len(h.Devices) == 0 {
		fmt.Fprintf(w, "GPUs    none found; asked: gangrun-nvml beside gangrun and in PATH, then nvidia-smi in PATH, and /sys, which shows %s of NVIDIA\n",
			text.Count(len(m.Kernel.GPUs()), "GPU"))
	}
	for _, f := range m.Findings {
		fmt.Fprintf(w, "%-7s %s\n", f.Severity, text.Printable(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(w, "hint    %s\n", text.Printable(f.Hint))
		}
	}
	if len(h.Devices) == 0 {
		fmt.Fprintln(w, "hint    to see other machines: gangrun topo --inventory FILE")
	}
	fmt.Fprintf(w, "CPUs    %s online, %s for gangrun\n", cmp.Or(text.Printable(m.Kernel.CPUs), "not known which"), text.Count(h.Cores, "core"))
	for _, n := range m.Kernel.Nodes {
		memory := ""
		if n.Memory > 0 {
			memory = fmt.Sprintf(", %.1f GiB", float64(n.Memory)/(1<<30))
		}
		distances := ""
		if len(n.Distances) > 1 {
			distances = fmt.Sprintf(", distances %s", strings.Trim(fmt.Sprint(n.Distances), "[]"))
		}
		fmt.Fprintf(w, "NUMA %-2d CPUs %s%s%s\n", n.ID, cmp.Or(text.Printable(n.CPUs), "none"), memory, distances)
	}
	if len(m.Kernel.NICs) == 0 {
		fmt.Fprintln(w, "NICs    none of InfiniBand or RoCE")
	}
	for _, n := range reportOf(m).NICs {
		about := []string{"down"}
		if n.Up {
			about[0] = "up"
		}
		for _, more := range []struct{ word, value string }{
			{"", n.Rate}, {"PCI ", n.PCI}, {"NUMA ", n.NUMA}, {"", strings.Join(n.Nets, " ")},
		} {
			if more.value != "" {
				about = append(about, more.word+text.Printable(more.value))
			}
		}
		fmt.Fprintf(w, "NIC     %s: %s\n", text.Printable(n.Name), strings.Join(about, ", "))
	}
}

// matrix prints the links of a host in the form of "nvidia-smi topo -m".
func matrix(w io.Writer, h job.Host) {
	labels := topology.Labels(h)
	_, states := gpuStates(h)
	of := islandOf(h, topology.Islands(h))
	head := slices.Clone(labels)
	for _, n := range h.NICs {
		head = append(head, text.Printable(n.Name))
	}
	head = append(head, "CPUs", "NUMA", "ISLAND", "STATE")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t%s\n", strings.Join(head, "\t"))
	for i, d := range h.Devices {
		row := []string{labels[i]}
		for j := range h.Devices {
			cell := cmp.Or(text.Printable(string(topology.LinkBetween(h, i, j))), "?")
			if i == j {
				cell = "X"
			}
			row = append(row, cell)
		}
		for _, n := range h.NICs {
			row = append(row, cmp.Or(text.Printable(string(nicLink(n, i))), "?"))
		}
		island := "-"
		if of[i] >= 0 {
			island = islandName(of[i])
		}
		row = append(row, cmp.Or(text.Printable(d.CPUs), "-"), cmp.Or(text.Printable(d.NUMA), "-"), island, states[i])
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush()
}

// nicLink returns how a NIC is connected to a device. It returns "" if that is not known.
func nicLink(n job.NIC, device int) job.Link {
	if device < len(n.Links) {
		return n.Links[device]
	}
	return ""
}

// islandLines prints the islands of a host and the models of its GPUs.
func islandLines(w io.Writer, h job.Host) {
	labels, islands := topology.Labels(h), topology.Islands(h)
	of := islandOf(h, islands)
	fmt.Fprintln(w)
	for k, island := range islands {
		var names []string
		for _, i := range island {
			names = append(names, labels[i])
		}
		links := linksAmong(h, func(a, b int) bool { return of[a] == k && of[b] == k })
		among := ""
		if len(links) > 0 && len(h.Links) > 0 {
			among = ": " + linkList(links)
		}
		fmt.Fprintf(w, "island %s  %s%s\n", islandName(k), strings.Join(names, " "), among)
	}
	if between := linksAmong(h, func(a, b int) bool { return of[a] != of[b] }); len(between) > 0 && len(h.Links) > 0 {
		fmt.Fprintf(w, "between islands: %s\n", linkList(between))
	}
	models := map[string][]string{}
	var order []string
	for i, d := range h.Devices {
		if name := text.Printable(d.Name); name != "" {
			if models[name] == nil {
				order = append(order, name)
			}
			models[name] = append(models[name], labels[i])
		}
	}
	for _, name := range order {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(models[name], " "))
	}
}

// legend explains the links of a host.
func legend(w io.Writer, h job.Host) {
	links := linksAmong(h, func(int, int) bool { return true })
	for _, n := range h.NICs {
		for _, l := range n.Links {
			if !slices.Contains(links, l) {
				links = append(links, l)
			}
		}
	}
	slices.SortStableFunc(links, nearer)
	for i, l := range links {
		before := "        "
		if i == 0 {
			before = "links   "
		}
		fmt.Fprintf(w, "%s%-4s  %s\n", before, cmp.Or(text.Printable(string(l)), "?"), topology.LinkWords(l))
	}
}
