package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
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
	cut := make([]bool, len(h.Devices))
	for i := range cut {
		cut[i] = true
	}
	for _, i := range topology.Leaves(h) {
		cut[i] = false
	}
	return cut
}

// nearer puts links in order, the nearest first.
func nearer(a, b job.Link) int { return cmp.Compare(topology.Score(b), topology.Score(a)) }

// linksAmong lists the different links between pairs of devices for which pair
// holds, the nearest first.
func linksAmong(h job.Host, pair func(a, b int) bool) []job.Link {
	var links []job.Link
	leaves := topology.Leaves(h)
	for k, i := range leaves {
		for _, j := range leaves[:k] {
			if l := topology.LinkBetween(h, i, j); pair(i, j) && !slices.Contains(links, l) {
				links = append(links, l)
			}
		}
	}
	slices.SortStableFunc(links, nearer)
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
