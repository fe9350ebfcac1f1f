package hostview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// gpuStates returns the state of each device of a host. It also returns a text for each, which says why the device is
// not free.
func gpuStates(h job.Host) ([]topology.DeviceState, []string) {
	states, words := topology.DeviceStates(h), make([]string, len(h.Devices))
	sick := map[string]string{}
	for _, d := range h.Devices {
		sick[d.UUID] = d.Sick
	}
	for i, d := range h.Devices {
		switch states[i] {
		case topology.DeviceCut:
			words[i] = "cut into MIG instances"
		case topology.DeviceSick:
			words[i] = "sick: " + text.Printable(cmp.Or(d.Sick, sick[d.GPU]))
		case topology.DeviceBusy:
			words[i] = text.Printable(d.Busy)
			if !strings.HasPrefix(words[i], "busy") {
				words[i] = "busy: " + words[i]
			}
		default:
			words[i] = "free"
		}
	}
	return states, words
}

// nearer compares two links for sorting, so that the nearest links come first.
func nearer(a, b job.Link) int { return cmp.Compare(topology.Score(b), topology.Score(a)) }

// linksAmong returns the different links between those pairs of devices for which pair returns true. The nearest links
// come first.
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

// linkList joins the names of links with commas. The name of an unknown link is "not known".
func linkList(links []job.Link) string {
	var names []string
	for _, l := range links {
		names = append(names, cmp.Or(text.Printable(string(l)), "not known"))
	}
	return strings.Join(names, ", ")
}

// islandName returns the name of island i: A, B, ..., Z, AA, AB, ...
func islandName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return islandName(i/26-1) + islandName(i%26)
}
