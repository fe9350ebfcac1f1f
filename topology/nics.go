package topology

import "github.com/gangrun/gangrun/internal/job"

// distance is how far a NIC is: 0 on the GPU's board, 1 for PIX, up to 5 for SYS
// and for what is not known.
func distance(score int32) int32 {
	return min(5, max(0, (60-score)/10))
}

// nearest is the score of the link between a device of a host, by its place in
// Devices, and the nearest of the host's NICs; 0 is not known.
func nearest(h *job.Host, device int) int32 {
	best := int32(0)
	for i := range h.NICs {
		if links := h.NICs[i].Links; device < len(links) {
			best = max(best, score(links[device]))
		}
	}
	return best
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
			if d < len(nic.Links) && score(nic.Links[d]) > 0 && distance(score(nic.Links[d])) == distance(nearest(&h, d)) {
				names = append(names, nic.Name)
				break
			}
		}
	}
	return names
}
