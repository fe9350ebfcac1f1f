package gpuwatch

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// gangGPUs has the GPUs of one host that a gang holds.
type gangGPUs struct {
	host  string
	uuids []string         // the UUIDs of whole GPUs
	ranks map[string][]int // the ranks that hold each GPU, or MIG instances of it
	label map[string]string
	byPCI map[string]string // UUIDs by bus ID, for GPUs that can no longer report their UUIDs
}

// gpusOn returns the GPUs of the host h that the ranks of a placement hold.
func gpusOn(p job.Placement, h job.Host) gangGPUs {
	g := gangGPUs{host: h.Name, ranks: map[string][]int{}, label: map[string]string{}, byPCI: map[string]string{}}
	whole := map[string]string{} // the GPU of each device
	for i, label := range topology.Labels(h) {
		d := h.Devices[i]
		whole[d.UUID] = cmp.Or(d.GPU, d.UUID)
		label, _, _ = strings.Cut(label, ":")
		g.label[whole[d.UUID]] = label
		g.byPCI[d.PCI] = whole[d.UUID]
	}
	for _, r := range p.On(h.Name) {
		for _, device := range r.Devices {
			uuid := cmp.Or(whole[device], device)
			if g.ranks[uuid] == nil {
				g.uuids = append(g.uuids, uuid)
			}
			if !slices.Contains(g.ranks[uuid], r.Rank) {
				g.ranks[uuid] = append(g.ranks[uuid], r.Rank)
			}
		}
	}
	return g
}

// name returns the name of a GPU with the ranks that hold it, as in "GPU0 (rank 1)".
func (g gangGPUs) name(uuid, pci string) string {
	name := cmp.Or(g.label[uuid], uuid, "GPU "+cmp.Or(pci, "not known"))
	if ranks := g.ranks[uuid]; len(ranks) > 0 {
		name += " (" + ranksText(ranks) + ")"
	}
	return name
}
