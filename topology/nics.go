package topology

import "github.com/gangrun/gangrun/internal/job"

// distance returns the distance of a NIC from the score of its link: 0 on the GPU's board, 1 for PIX, up to 5
// for SYS and for an unknown link.
func distance(score int32) int32 {
	return min(5, max(0, (60-score)/10))
}

// nearest returns the score of the link between a device and its nearest NIC, or 0 if it is not known. device
// is an index in h.Devices.
func nearest(h *job.Host, device int) int32 {
	best := int32(0)
	for i := range h.NICs {
		if links := h.NICs[i].Links; device < len(links) {
			best = max(best, score(links[device]))
		}
	}
	return best
}

// NICs returns the names of the NICs that are nearest to any of the devices with the given UUIDs. A rank with
// these devices should have these NICs in NCCL_IB_HCA and UCX_NET_DEVICES. If no distance is known, NICs
// returns no names.
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
