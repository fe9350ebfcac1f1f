package nvml

import (
	"errors"
	"fmt"

	"github.com/gangrun/gangrun/internal/job"
)

// maxNVLinks is the maximum number of NVLinks of a GPU that are queried. It is NVML_NVLINK_MAX_LINKS in nvml.h,
// and the largest GPUs so far have as many.
const maxNVLinks = 18

// ports has the active NVLinks of one GPU.
type ports struct {
	switches int
	gpus     map[int]int // number of links to each GPU of the report
}

// readLinks returns how each pair of devices is connected. It adds the errors to devices. handles has the
// handles of the devices. A handle is nil if there is none.
func readLinks(devices []Device, handles []GPU) [][]job.Link {
	byPCI := map[string]int{}
	for i, d := range devices {
		if d.PCI != "" {
			byPCI[d.PCI] = i
		}
	}
	all := make([]ports, len(devices))
	links := make([][]job.Link, len(devices))
	for i, g := range handles {
		links[i] = make([]job.Link, len(devices))
		r := reader{faults{&devices[i].Errors}, g, &devices[i]}
		if g == nil {
			r.note(errors.New(devices[i].Lost), "links")
			continue
		}
		all[i] = r.readPorts(byPCI)
	}
	for i, a := range handles {
		for j := i + 1; j < len(handles); j++ {
			b := handles[j]
			if a == nil || b == nil {
				continue
			}
			// A GPU with a fault may not report its end of a link. A switch reaches every GPU that
			// has links to switches.
			n := max(all[i].gpus[j], all[j].gpus[i]) + min(all[i].switches, all[j].switches)
			link := job.Link(fmt.Sprintf("NV%d", n))
			if n == 0 {
				var err error
				if link, err = a.Ancestor(b); err != nil {
					noteAncestor(devices, i, j, err)
					link = ""
				}
			}
			links[i][j], links[j][i] = link, link
		}
	}
	return links
}

// noteAncestor notes why the path between two devices is not known. It adds the note to the device that is
// lost, or to both.
func noteAncestor(devices []Device, i, j int, err error) {
	for _, pair := range [][2]int{{i, j}, {j, i}} {
		of, to := &devices[pair[0]], &devices[pair[1]]
		if of.Lost != "" || to.Lost == "" {
			faults{&of.Errors}.note(fmt.Errorf("to GPU %d: %w", to.Index, err), "links")
		}
	}
}

// readPorts reads to which devices the NVLinks of a GPU lead.
func (r reader) readPorts(byPCI map[string]int) ports {
	p := ports{gpus: map[int]int{}}
	failed := func(n int, err error) { r.note(fmt.Errorf("NVLink %d: %w", n, err), "links") }
	for n := range maxNVLinks {
		state, err := r.gpu.Ask(QueryLink, n)
		switch {
		case errors.Is(err, ErrNotFound):
			return p // there are no further links
		case errors.Is(err, ErrNotSupported):
			continue // there is no such link
		case err != nil:
			failed(n, err)
			continue
		case state.Numbers[0] != 1:
			continue
		}
		kind, kindErr := r.gpu.Ask(QueryPeerKind, n)
		if kindErr == nil && kind.Numbers[0] == PeerSwitch {
			p.switches++
			continue
		}
		if kindErr == nil && kind.Numbers[0] == PeerNPU {
			continue
		}
		peer, err := r.gpu.Ask(QueryPeer, n)
		if err != nil {
			failed(n, err)
			continue
		}
		pci, err := BusID(peer.Text)
		if err != nil {
			failed(n, err)
			continue
		}
		switch to, known := byPCI[pci]; {
		case known:
			p.gpus[to]++
		case kindErr != nil:
			failed(n, fmt.Errorf("it leads to %s, and its kind is not known: %w", pci, kindErr))
		case kind.Numbers[0] == PeerUnknown:
			failed(n, fmt.Errorf("it leads to %s, and the driver does not know what that is", pci))
		}
		// Otherwise it is a GPU that is not in the report, for example of another container or job.
	}
	return p
}
