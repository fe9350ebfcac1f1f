package topology

import (
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// score is what a link is worth, more being better. The figures are those of
// NVIDIA's go-gpuallocator (gpuallocator/besteffort_policy.go): 100 for each
// NVLink, 60 on one board, 50 for one PCIe switch, 40 for several, 30 for a
// host bridge, 20 within one CPU, 10 across CPUs. What is not known is worth 0.
// Drivers before 2017 write SOC for what later ones call SYS; parsers give it
// as job.LinkSYS, and it is worth the same.
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
	if count, ok := strings.CutPrefix(string(l), "NV"); ok {
		if n, err := strconv.ParseUint(count, 10, 8); err == nil {
			return 100 * int32(n)
		}
	}
	return 0
}

// class is the kind of a link of a score: NVLinks are all of one kind, however
// many there are.
func class(score int32) int32 { return min(score, 100) }

// distance is how far a NIC is: 0 on the GPU's board, 1 for PIX, up to 5 for SYS
// and for what is not known.
func distance(l job.Link) int32 {
	return min(5, max(0, (60-score(l))/10))
}

// nearest is the distance from a device of a host, by its place in Devices, to
// the nearest of the host's NICs.
func nearest(h *job.Host, device int) int32 {
	near := distance(job.LinkSYS)
	for i := range h.NICs {
		if links := h.NICs[i].Links; device < len(links) {
			near = min(near, distance(links[device]))
		}
	}
	return near
}

// NICs returns the names of those NICs of a host that are as near to any of the
// devices, by UUID, as any NIC is: what NCCL_IB_HCA and UCX_NET_DEVICES should
// name for a rank that has these. It is empty where no distance is known.
func NICs(h job.Host, devices []string) []string {
	near := map[int]bool{}
	for d := range h.Devices {
		for _, uuid := range devices {
			if h.Devices[d].UUID == uuid {
				near[d] = true
			}
		}
	}
	var names []string
	for _, nic := range h.NICs {
		for d := range near {
			if d < len(nic.Links) && score(nic.Links[d]) > 0 && distance(nic.Links[d]) == nearest(&h, d) {
				names = append(names, nic.Name)
				break
			}
		}
	}
	return names
}
