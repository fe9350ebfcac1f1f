package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// paths are the links that are no NVLinks, the nearest first, and what they are.
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

// Score is what a link is worth, more being better. The figures are those of
// NVIDIA's go-gpuallocator (gpuallocator/besteffort_policy.go): 100 for each
// NVLink, 60 on one board, 50 for one PCIe switch, 40 for several, 30 for a
// host bridge, 20 within one CPU, 10 across CPUs. What is not known is worth 0.
// Drivers before 2017 write SOC for what later ones call SYS; parsers give it
// as job.LinkSYS, and it is worth the same.
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

// NVLinks is the number of NVLinks that a link is made of, 0 for others.
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

// LinkOf is the link of a score, empty where no link has it.
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

// LinkWords explains a link, as in "4 NVLinks" or "through one PCIe switch".
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

// LinkBetween is how two devices of a host, by place, are connected; empty where
// that is not known.
func LinkBetween(h job.Host, a, b int) job.Link {
	if a < len(h.Links) && b < len(h.Links[a]) {
		return h.Links[a][b]
	}
	return ""
}

// class is the kind of a link of a score: NVLinks are all of one kind, however
// many there are.
func class(score int32) int32 { return min(score, 100) }

// Leaves lists the devices of a host, by place, without GPUs whose MIG instances
// stand beside them: such a GPU is nothing that a gang could be given.
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

// Islands parts the Leaves of a host, by place, as the comment of Cost.Left says.
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

// linkScores is the scores of the links between some devices of a host.
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

// census counts links by their scores.
type census map[int32]int

// words names the links, the best first. It explains a link that is not in explained
// yet, as in "4 pairs by NV1 (1 NVLink), 2 by SYS".
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

// linkText names the link of a score. It explains the link, and adds it to explained,
// if it is not there yet.
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
