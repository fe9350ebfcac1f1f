package hostview

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// stateColours has a colour for each state of a GPU.
var stateColours = [...]string{topology.DeviceFree: "#cdebd3", topology.DeviceBusy: "#f7d9a8", topology.DeviceSick: "#f2b8b5", topology.DeviceCut: "#e2e2e2"}

// Dot prints the hosts of l as a graph in the DOT language of Graphviz.
func Dot(to io.Writer, l hostlist.List) error {
	w := bufio.NewWriter(to)
	fmt.Fprintln(w, "graph gangrun {")
	// Graphviz knows the widths of this font even if no fonts are installed.
	fmt.Fprintln(w, "  fontname=\"Helvetica\";")
	fmt.Fprintln(w, "  node [shape=box, style=filled, fillcolor=white, fontname=\"Helvetica\", margin=\"0.2,0.08\"];")
	if len(l.Hosts) == 1 {
		hostDot(w, l.Hosts[0])
	} else {
		racksDot(w, l.Hosts)
	}
	fmt.Fprintln(w, "}")
	return w.Flush()
}

// hostDot draws the GPUs of a host on a circle, island by island. It draws the links between GPUs that are PHB or
// better, and links each NIC to the GPUs to which it is nearest.
func hostDot(w io.Writer, h job.Host) {
	edges := gpuEdges(h)
	label := "host " + h.Name + where(h) + ": " + gpuCount(h)
	for _, line := range linkLegend(h, edges) {
		switch {
		case line.dash == nicDashes:
			label += "\ndotted: " + line.text
		case line.width > 0:
			label += fmt.Sprintf("\nwidth %g: %s", line.width, line.text)
		default:
			label += "\n" + line.text
		}
	}
	fmt.Fprintf(w, "  layout=neato; splines=line; pad=1; label=%s;\n", dotText(label))
	a, labels := arrange(h), topology.Labels(h)
	at := func(p point) string { return fmt.Sprintf("\"%.2f,%.2f!\"", p.x*dotScale, (a.height-p.y)*dotScale) } // in Graphviz, y grows upwards
	islands := topology.Islands(h)
	of := islandOf(h, islands)
	states, words := gpuStates(h)
	for _, i := range topology.Leaves(h) {
		label := labels[i]
		if len(islands) > 1 {
			label += " " + islandName(of[i])
		}
		fmt.Fprintf(w, "  g%d [label=%s, tooltip=%s, pos=%s, fillcolor=%q];\n", i, dotText(label), dotText(words[i]), at(a.gpus[i]), stateColours[states[i]])
	}
	for i, n := range h.NICs {
		fmt.Fprintf(w, "  n%d [label=%s, pos=%s, shape=ellipse];\n", i, dotText(n.Name), at(a.nics[i]))
	}
	widths := edgeWidths(edges)
	for _, e := range edges {
		style := "solid"
		if topology.NVLinks(e.link) == 0 {
			style = "dashed"
		}
		fmt.Fprintf(w, "  g%d -- g%d [tooltip=%s, style=%s, penwidth=%g];\n", e.a, e.b, dotText(string(e.link)), style, widths[e.link])
	}
	for _, e := range nicEdges(h) {
		fmt.Fprintf(w, "  g%d -- n%d [tooltip=%s, style=dotted];\n", e.a, e.b, dotText(string(e.link)))
	}
}

// dotScale converts pixels to inches, the unit of Graphviz. It also makes drawings a little larger, because Graphviz
// draws larger boxes.
const dotScale = 1.3 / 72

// racksDot draws the racks, with the switches and hosts in each of them.
func racksDot(w io.Writer, hosts []job.Host) {
	// The switches are on the left. Graphviz puts the first of several nodes at the bottom.
	fmt.Fprintln(w, "  rankdir=LR; labeljust=l;")
	host, sw := 0, 0
	for r, rack := range slices.Backward(byRack(hosts)) {
		name := "rack not known"
		if rack.name != "" {
			name = "rack " + rack.name
		}
		fmt.Fprintf(w, "  subgraph cluster_%d {\n    label=%s;\n", r, dotText(name))
		for _, s := range slices.Backward(rack.switches) {
			name := "switch not known"
			if s.name != "" {
				name = "switch " + s.name
			}
			fmt.Fprintf(w, "    s%d [label=%s, shape=ellipse];\n", sw, dotText(name))
			for _, h := range slices.Backward(s.hosts) {
				text := h.Name + "\n" + gpuCount(h)
				if more := islandText(h); more != "" {
					text += "\n" + more
				}
				fmt.Fprintf(w, "    h%d [label=%s];\n    s%d -- h%d;\n", host, dotText(text), sw, host)
				host++
			}
			sw++
		}
		fmt.Fprintln(w, "  }")
	}
}

// dotText returns text as a quoted string of the DOT language.
func dotText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text.Printable(lines[i]))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
