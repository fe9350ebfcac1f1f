package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/internal/job"
)

// gpuLabels names the devices of a host: GPU and the index, and behind a colon
// the number of the MIG instance within its GPU.
func gpuLabels(h job.Host) []string {
	labels := make([]string, len(h.Devices))
	parts := map[string]int{}
	for i, d := range h.Devices {
		labels[i] = "GPU" + strconv.Itoa(d.Index)
		if d.GPU != "" && d.GPU != d.UUID {
			labels[i] += ":" + strconv.Itoa(parts[d.GPU])
			parts[d.GPU]++
		}
	}
	return labels
}

// gpuState is what may be done with a device.
type gpuState int

const (
	gpuFree gpuState = iota
	gpuBusy
	gpuSick
	gpuCut // into MIG instances, which are devices of their own
)

// gpuStates tells of every device of a host what may be done with it, and in
// words why it is not free.
func gpuStates(h job.Host) ([]gpuState, []string) {
	states, words := make([]gpuState, len(h.Devices)), make([]string, len(h.Devices))
	sick, cut := map[string]string{}, cuts(h)
	for _, d := range h.Devices {
		sick[d.UUID] = d.Sick
	}
	for i, d := range h.Devices {
		switch {
		case cut[i]:
			states[i], words[i] = gpuCut, "cut into MIG instances"
		case d.Sick != "" || sick[d.GPU] != "":
			states[i], words[i] = gpuSick, "sick: "+printable(cmp.Or(d.Sick, sick[d.GPU]))
		case d.Busy != "":
			states[i], words[i] = gpuBusy, printable(d.Busy)
			if !strings.HasPrefix(words[i], "busy") {
				words[i] = "busy: " + words[i]
			}
		default:
			words[i] = "free"
		}
	}
	return states, words
}

// cuts tells of every device whether it is a GPU whose MIG instances stand
// beside it.
func cuts(h job.Host) []bool {
	parents := map[string]bool{}
	for _, d := range h.Devices {
		if d.GPU != "" && d.GPU != d.UUID {
			parents[d.GPU] = true
		}
	}
	cut := make([]bool, len(h.Devices))
	for i, d := range h.Devices {
		cut[i] = parents[d.UUID]
	}
	return cut
}

// closeness puts links in order, the nearest first: all NVLinks are one class.
func closeness(l job.Link) int {
	if strings.HasPrefix(string(l), "NV") {
		return 0
	}
	order := []job.Link{job.LinkPSB, job.LinkPIX, job.LinkPXB, job.LinkPHB, job.LinkNODE, job.LinkSYS}
	if at := slices.Index(order, l); at >= 0 {
		return 1 + at
	}
	return 1 + len(order) // not known
}

// nvlinks is the number of NVLinks of a link, 0 for others.
func nvlinks(l job.Link) int {
	n, err := strconv.Atoi(strings.TrimPrefix(string(l), "NV"))
	if err != nil || closeness(l) != 0 {
		return 0
	}
	return n
}

// linkBetween is how two devices of a host are connected, empty where it is not
// known.
func linkBetween(h job.Host, a, b int) job.Link {
	if a < len(h.Links) && b < len(h.Links[a]) {
		return h.Links[a][b]
	}
	return ""
}

// gpuIslands parts the devices of a host, by place, as topology.Cost says of its
// Left: what hangs together by links of the strongest class, where that is PHB or
// better; else all.
func gpuIslands(h job.Host) [][]int {
	best, cut := closeness(job.LinkPHB)+1, cuts(h)
	for i := range h.Devices {
		for j := range i {
			if !cut[i] && !cut[j] {
				best = min(best, closeness(linkBetween(h, i, j)))
			}
		}
	}
	weak := best > closeness(job.LinkPHB)
	var islands [][]int
	seen := make([]bool, len(h.Devices))
	for first := range h.Devices {
		if seen[first] || cut[first] {
			continue
		}
		seen[first] = true
		island := []int{first}
		for k := 0; k < len(island); k++ {
			for j := range h.Devices {
				if !seen[j] && !cut[j] && (weak || closeness(linkBetween(h, island[k], j)) <= best) {
					seen[j] = true
					island = append(island, j)
				}
			}
		}
		slices.Sort(island)
		islands = append(islands, island)
	}
	return islands
}

// linksAmong lists the different links between pairs of devices for which pair
// holds, the nearest first.
func linksAmong(h job.Host, pair func(a, b int) bool) []job.Link {
	var links []job.Link
	cut := cuts(h)
	for i := range h.Devices {
		for j := range i {
			if l := linkBetween(h, i, j); !cut[i] && !cut[j] && pair(i, j) && !slices.Contains(links, l) {
				links = append(links, l)
			}
		}
	}
	slices.SortFunc(links, func(a, b job.Link) int {
		return cmp.Or(cmp.Compare(closeness(a), closeness(b)), cmp.Compare(nvlinks(b), nvlinks(a)))
	})
	return links
}

// linkList names links, "not known" among them.
func linkList(links []job.Link) string {
	var names []string
	for _, l := range links {
		names = append(names, cmp.Or(printable(string(l)), "not known"))
	}
	return strings.Join(names, ", ")
}

// linkWords says what a link is.
func linkWords(l job.Link) string {
	if n := nvlinks(l); n > 0 {
		return plural(n, "NVLink")
	}
	switch l {
	case job.LinkPSB:
		return "on one board"
	case job.LinkPIX:
		return "over one PCIe switch"
	case job.LinkPXB:
		return "over several PCIe switches"
	case job.LinkPHB:
		return "over the PCIe host bridge of a CPU"
	case job.LinkNODE:
		return "over PCIe host bridges of one NUMA node"
	case job.LinkSYS:
		return "over the connection between CPU sockets"
	}
	return "not known"
}

// islandName is A, B ... Z, AA ...
func islandName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return islandName(i/26-1) + islandName(i%26)
}

// plural writes a number of things.
func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "ch"):
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// printable is text without what a terminal could take for a command.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
