package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// stateColours are the colours of GPUs by what may be done with them.
var stateColours = [...]string{gpuFree: "#cdebd3", gpuBusy: "#f7d9a8", gpuSick: "#f2b8b5", gpuCut: "#e2e2e2"}

func printTopoDot(to io.Writer, l hostList) error {
	w := bufio.NewWriter(to)
	fmt.Fprintln(w, "graph gangrun {")
	fmt.Fprintln(w, "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\"];")
	if len(l.Hosts) == 1 {
		hostDot(w, l.Hosts[0])
	} else {
		racksDot(w, l.Hosts)
	}
	fmt.Fprintln(w, "}")
	return w.Flush()
}

// hostDot draws the GPUs of a host by island, with the links between them that are
// PHB or better, and each NIC with the GPUs to which it is nearest.
func hostDot(w io.Writer, h job.Host) {
	fmt.Fprintf(w, "  label=%s;\n", dotText(h.Name+where(h)))
	labels, islands := gpuLabels(h), topology.Islands(h)
	states, words := gpuStates(h)
	for k, island := range islands {
		fmt.Fprintf(w, "  subgraph cluster_%d {\n    label=%s;\n", k, dotText("island "+islandName(k)))
		for _, i := range island {
			fmt.Fprintf(w, "    g%d [label=%s, fillcolor=%q];\n", i, dotText(labels[i]+"\n"+words[i]), stateColours[states[i]])
		}
		fmt.Fprintln(w, "  }")
	}
	for _, e := range gpuEdges(h) {
		fmt.Fprintf(w, "  g%d -- g%d [label=%s, penwidth=%g];\n", e.a, e.b, dotText(string(e.link)), edgeWidth(e.link))
	}
	for i, n := range h.NICs {
		fmt.Fprintf(w, "  n%d [label=%s, shape=ellipse];\n", i, dotText(n.Name))
		for _, g := range nearestGPUs(h, n) {
			fmt.Fprintf(w, "  g%d -- n%d [label=%s, style=dashed];\n", g, i, dotText(string(nicLink(n, g))))
		}
	}
}

// racksDot draws hosts below their switches, in racks.
func racksDot(w io.Writer, hosts []job.Host) {
	host, sw := 0, 0
	for r, rack := range byRack(hosts) {
		name := "rack not known"
		if rack.name != "" {
			name = "rack " + rack.name
		}
		fmt.Fprintf(w, "  subgraph cluster_%d {\n    label=%s;\n", r, dotText(name))
		for _, s := range rack.switches {
			name := "switch not known"
			if s.name != "" {
				name = "switch " + s.name
			}
			fmt.Fprintf(w, "    s%d [label=%s, shape=ellipse];\n", sw, dotText(name))
			for _, h := range s.hosts {
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

// dotText is text as a quoted string of graphviz.
func dotText(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(lines[i]))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// gpuEdge is a link between two GPUs of a host that is drawn.
type gpuEdge struct {
	a, b int
	link job.Link
}

// isDrawn reports whether a link between GPUs is drawn: those through several host
// bridges, or between sockets, join everything to everything.
func isDrawn(l job.Link) bool { return topology.Score(l) >= topology.Score(job.LinkPHB) }

// gpuEdges lists the links of a host that are PHB or better.
func gpuEdges(h job.Host) []gpuEdge {
	var edges []gpuEdge
	leaves := topology.Leaves(h)
	for k, b := range leaves {
		for _, a := range leaves[:k] {
			if l := topology.LinkBetween(h, a, b); isDrawn(l) {
				edges = append(edges, gpuEdge{a, b, l})
			}
		}
	}
	return edges
}

// edgeWidth is how wide a link is drawn.
func edgeWidth(l job.Link) float64 {
	if n := topology.NVLinks(l); n > 0 {
		return 1.5 + 0.25*float64(min(n, 18))
	}
	return 1
}

// nearestGPUs lists the GPUs to which a NIC is nearest, none where all are as far
// as another CPU socket, or not known.
func nearestGPUs(h job.Host, n job.NIC) []int {
	best := topology.Score(job.LinkSYS)
	var near []int
	for _, i := range topology.Leaves(h) {
		score := topology.Score(nicLink(n, i))
		if score > best {
			best, near = score, nil
		}
		if score == best && score > topology.Score(job.LinkSYS) {
			near = append(near, i)
		}
	}
	return near
}
