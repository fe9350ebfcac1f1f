package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// paths has the links other than NVLinks, the closest first, with descriptions.
var paths = []struct {
	link  job.Link
	words string
}{
	{job.LinkPSB, "on one board"},
	{job.LinkPIX, "through one PCIe switch"},
	{job.LinkPXB, "through several PCIe switches"},
	{job.LinkPHB, "through the PCIe host bridge of a CPU"},
	{job.LinkNODE, "through several PCIe host bridges of one NUMA node"},
	{job.LinkSYS, "through the interconnect between CPU sockets, the slowest way"},
}

// Score returns how good a link is; higher is better. The scores are those of NVIDIA's
// go-gpuallocator (gpuallocator/besteffort_policy.go): 100 for each NVLink, 60 on one board, 50
// through one PCIe switch, 40 through several, 30 through a host bridge, 20 within one CPU, 10
// across CPUs, and 0 for an unknown link. Drivers before 2017 write SOC for SYS; the parsers
// return job.LinkSYS for both.
func Score(l job.Link) int { return int(score(l)) }

func score(l job.Link) int32 {
	switch l {
	case job.LinkPSB:
		return 60
	case job.LinkPIX:
		return 50
	case job.LinkPXB:
		return 40
	case job.LinkPHB:
		return 30
	case job.LinkNODE:
		return 20
	case job.LinkSYS:
		return 10
	}
	return 100 * int32(NVLinks(l))
}

// NVLinks returns how many NVLinks a link consists of. It returns 0 for any other kind of link.
func NVLinks(l job.Link) int {
	count, ok := strings.CutPrefix(string(l), "NV")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(count, 10, 8)
	if err != nil {
		return 0
	}
	return int(n)
}

// LinkOf returns the kind of link that has a score, or "" if there is none.
func LinkOf(score int) job.Link {
	if score >= 100 && score%100 == 0 {
		return job.Link("NV" + strconv.Itoa(score/100))
	}
	for _, p := range paths {
		if Score(p.link) == score {
			return p.link
		}
	}
	return ""
}

// LinkWords describes a link, as in "4 NVLinks" or "through one PCIe switch".
func LinkWords(l job.Link) string {
	if n := NVLinks(l); n > 0 {
		return count(n, "NVLink")
	}
	for _, p := range paths {
		if p.link == l {
			return p.words
		}
	}
	return "not known"
}

// LinkBetween returns the link between two devices of a host, given by their indices in
// h.Devices. It is empty if the link is not known.
func LinkBetween(h job.Host, a, b int) job.Link {
	if a < len(h.Links) && b < len(h.Links[a]) {
		return h.Links[a][b]
	}
	return ""
}

// class returns the class of a link by its score. All NVLinks are one class, whatever their
// number.
func class(score int32) int32 { return min(score, 100) }

// Leaves returns the devices that can be given to a gang, as indices in h.Devices: all MIG
// instances, and the GPUs that have no MIG instances in the list.
func Leaves(h job.Host) []int {
	parents := map[string]bool(nil)
	for i := range h.Devices {
		if d := &h.Devices[i]; isSlice(d) {
			if parents == nil {
				parents = map[string]bool{}
			}
			parents[d.GPU] = true
		}
	}
	list := make([]int, 0, len(h.Devices))
	for i := range h.Devices {
		if !parents[h.Devices[i].UUID] {
			list = append(list, i)
		}
	}
	return list
}

// Islands divides the Leaves of a host into islands (see Cost.Left). It returns them as indices
// in h.Devices.
func Islands(h job.Host) [][]int {
	leaves := Leaves(h)
	parts := islands(linkScores(h, leaves))
	for _, part := range parts {
		for i := range part {
			part[i] = leaves[part[i]]
		}
		slices.Sort(part)
	}
	return parts
}

// linkScores returns the scores of the links between the given devices of a host.
func linkScores(h job.Host, devices []int) [][]int32 {
	scores := make([][]int32, len(devices))
	for i, a := range devices {
		scores[i] = make([]int32, len(devices))
		for j, b := range devices {
			scores[i][j] = score(LinkBetween(h, a, b))
		}
	}
	return scores
}

// census has the number of links for each score.
type census map[int32]int

// words describes the links, the best first, as in "4 pairs by NV1 (1 NVLink), 2 by SYS". It describes a kind
// of link only if explained does not have it yet, and adds it there.
func (t census) words(thing string, explained map[int32]bool) string {
	scores := slices.Collect(maps.Keys(t))
	sortDescending(scores)
	var parts []string
	for i, score := range scores {
		what := strconv.Itoa(t[score])
		if i == 0 && thing != "" {
			what = count(t[score], thing)
		}
		parts = append(parts, what+" by "+linkText(score, explained))
	}
	return strings.Join(parts, ", ")
}

// linkText names the link with a score. If explained does not have the link, linkText also describes the link,
// and adds it to explained.
func linkText(score int32, explained map[int32]bool) string {
	l := LinkOf(int(score))
	switch {
	case l == "":
		return "a link that is not known"
	case explained[score]:
		return string(l)
	}
	explained[score] = true
	return fmt.Sprintf("%s (%s)", l, LinkWords(l))
}
