package hostview

import (
	"cmp"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// The sizes of the parts of a drawing, in pixels.
const (
	gpuWidth, gpuHeight = 72, 26
	nicHeight           = 20
)

// point is a place in a drawing. Its coordinates count from the top left.
type point struct{ x, y float64 }

// around returns the point that lies at an angle and a distance from p.
func around(p point, distance, angle float64) point {
	return point{p.x + distance*math.Cos(angle), p.y + distance*math.Sin(angle)}
}

// arrangement has the places at which the GPUs and NICs of a host are drawn. The GPUs are on a circle, island by
// island, and the NICs are around them.
type arrangement struct {
	gpus          map[int]point // the keys are indices into Devices; GPUs that are cut into MIG instances are missing
	nics          []point
	width, height float64
}

// arrange returns an arrangement in which no two boxes overlap.
func arrange(h job.Host) arrangement {
	var order []int
	for _, island := range topology.Islands(h) {
		order = append(order, island...)
	}
	radius := max(90, float64(len(order))*gpuWidth*1.5/(2*math.Pi))
	widest := 0.0
	for _, n := range h.NICs {
		widest = max(widest, nicWidth(n))
	}
	outer := max(radius+60+widest/2, float64(len(h.NICs))*(widest+12)/(2*math.Pi))
	a := arrangement{gpus: map[int]point{}, nics: make([]point, len(h.NICs))}
	angle := map[int]float64{}
	for k, i := range order {
		angle[i] = 2*math.Pi*(float64(k)+0.5)/float64(len(order)) - math.Pi/2
		a.gpus[i] = around(point{}, radius, angle[i])
	}
	type place struct {
		nic  int
		wish float64 // the direction of the middle of its GPUs, as an angle from the top
	}
	var places []place
	for i, n := range h.NICs {
		p := place{i, 1.5 * math.Pi}
		var sum point
		near := nearestGPUs(h, n)
		for _, g := range near {
			sum = around(sum, 1, angle[g])
		}
		if len(near) > 0 {
			p.wish = math.Mod(math.Atan2(sum.y, sum.x)+2.5*math.Pi, 2*math.Pi)
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.wish, b.wish) })
	step := 2 * math.Pi / float64(max(1, len(places)))
	var turn point // its direction is the mean angle between the wishes and evenly distributed places
	for k, p := range places {
		turn = around(turn, 1, p.wish-step*float64(k))
	}
	first := math.Atan2(turn.y, turn.x) - math.Pi/2
	for k, p := range places {
		a.nics[p.nic] = around(point{}, outer, first+step*float64(k))
	}
	a.crop(h)
	return a
}

// crop moves everything so that the drawing begins at 0, 0. It sets width and height.
func (a *arrangement) crop(h job.Host) {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	hold := func(p point, width, height float64) {
		low = point{min(low.x, p.x-width/2), min(low.y, p.y-height/2)}
		high = point{max(high.x, p.x+width/2), max(high.y, p.y+height/2)}
	}
	for _, p := range a.gpus {
		hold(p, gpuWidth, gpuHeight)
	}
	for i, p := range a.nics {
		hold(p, nicWidth(h.NICs[i]), nicHeight)
	}
	if low.x > high.x {
		return // nothing is drawn
	}
	for i, p := range a.gpus {
		a.gpus[i] = point{p.x - low.x, p.y - low.y}
	}
	for i, p := range a.nics {
		a.nics[i] = point{p.x - low.x, p.y - low.y}
	}
	a.width, a.height = high.x-low.x, high.y-low.y
}

// nearestGPUs returns the GPUs to which a NIC is nearest. It returns none if no GPU is nearer than another CPU socket,
// or if the distances are not known.
func nearestGPUs(h job.Host, n job.NIC) []int {
	best := topology.Score(job.LinkSYS)
	var near []int
	for _, i := range topology.Leaves(h) {
		score := topology.Score(nicLink(n, i))
		if score > best {
			best, near = score, nil
		}
		if score == best && score > topology.Score(job.LinkSYS) {
			near = append(near, i)
		}
	}
	return near
}

// edge is a link that is drawn. It joins GPUs a and b, or GPU a and NIC b.
type edge struct {
	a, b int
	link job.Link
}

// isDrawn reports whether a link is drawn. Links through several host bridges or between sockets are not drawn,
// because they connect everything to everything.
func isDrawn(l job.Link) bool { return topology.Score(l) >= topology.Score(job.LinkPHB) }

// gpuEdges returns those links between GPUs of a host that are drawn.
func gpuEdges(h job.Host) []edge {
	var edges []edge
	leaves := topology.Leaves(h)
	for k, b := range leaves {
		for _, a := range leaves[:k] {
			if l := topology.LinkBetween(h, a, b); isDrawn(l) {
				edges = append(edges, edge{a, b, l})
			}
		}
	}
	return edges
}

// nicEdges returns those links between NICs and their nearest GPUs that are drawn.
func nicEdges(h job.Host) []edge {
	var edges []edge
	for i, n := range h.NICs {
		for _, g := range nearestGPUs(h, n) {
			if l := nicLink(n, g); isDrawn(l) {
				edges = append(edges, edge{g, i, l})
			}
		}
	}
	return edges
}

// edgeWidths returns the width in pixels of each link between GPUs. The narrowest links are 1 pixel wide. A link of
// more NVLinks is drawn wider.
func edgeWidths(edges []edge) map[job.Link]float64 {
	widths := map[job.Link]float64{}
	var links []job.Link
	for _, e := range edges {
		if _, ok := widths[e.link]; !ok {
			widths[e.link] = 1
			if topology.NVLinks(e.link) > 0 {
				links = append(links, e.link)
			}
		}
	}
	slices.SortFunc(links, nearer)
	for i, l := range links {
		widths[l] = 1 + 2.5*float64(min(3, len(links)-1-i))
	}
	return widths
}
