package htmlreport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// mostHosts limits the number of hosts that the picture of a gang shows, and mostGPUs the number of GPUs of
// each host.
const (
	mostHosts = 16
	mostGPUs  = 16
	boxWidth  = 66 // of a GPU
)

// place is the picture of the hosts of a gang.
type place struct {
	Hosts []hostPicture
	Links []string // what the lines mean
	Left  int      // number of hosts that are not drawn
}

// hostPicture is the picture of a host. It is 300 units wide.
type hostPicture struct {
	Name, Where string
	Ranks       string
	GPUs        []gpu
	Lines       []link
	Left        int // number of GPUs that are not drawn
	Height      float64
	Islands     int
}

type gpu struct {
	X, Y         float64
	Label        string // with the letter of its island, if there are several
	Ranks, Class string // Class is held, free or sick
	Title        string
}

// LabelY and RanksY return the positions of the texts in the box of the GPU.
func (g gpu) LabelY() float64 { return g.Y - 3 }
func (g gpu) RanksY() float64 { return g.Y + 11 }

// BoxX and BoxY return the upper left corner of the box.
func (g gpu) BoxX() float64 { return g.X - boxWidth/2 }
func (g gpu) BoxY() float64 { return g.Y - 17 }

// Box returns the width of the box.
func (g gpu) Box() int { return boxWidth }

type link struct {
	X1, Y1, X2, Y2 float64
	Class          string // nvlink or pcie, with held if the gang holds both GPUs
	Width          float64
	Title          string
}

func placeOf(p job.Placement) (out place) {
	out.Left = max(0, len(p.Hosts)-mostHosts)
	kinds := map[job.Link]bool{}
	for _, h := range p.Hosts[:len(p.Hosts)-out.Left] {
		out.Hosts = append(out.Hosts, picture(h, p.On(h.Name), kinds))
	}
	all := make([]job.Link, 0, len(kinds))
	for l := range kinds {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b job.Link) int {
		return cmp.Or(topology.Score(b)-topology.Score(a), strings.Compare(string(a), string(b)))
	})
	for _, l := range all {
		out.Links = append(out.Links, string(l)+": "+topology.LinkWords(l))
	}
	return out
}

// picture draws a host with its ranks of the gang.
func picture(h job.Host, ranks []job.Rank, kinds map[job.Link]bool) hostPicture {
	out := hostPicture{Name: h.Name}
	var numbers []int
	holders := map[string][]int{} // ranks by GPU
	for _, r := range ranks {
		numbers = append(numbers, r.Rank)
		for _, d := range r.Devices {
			holders[d] = append(holders[d], r.Rank)
		}
	}
	out.Ranks = rankText(numbers)
	var where []string
	if h.Rack != "" {
		where = append(where, "rack "+h.Rack)
	}
	if h.Switch != "" {
		where = append(where, "switch "+h.Switch)
	}
	out.Where = text.Clip(strings.Join(where, ", "), 80)
	islands := topology.Islands(h)
	out.Islands = len(islands)
	var order []int // the GPUs of an island are neighbours
	island := map[int]string{}
	for i, members := range islands {
		order = append(order, members...)
		for _, g := range members {
			if len(islands) > 1 && len(islands) <= 26 {
				island[g] = string(rune('A'+i)) + " "
			}
		}
	}
	out.Left = max(0, len(order)-mostGPUs)
	order = order[:len(order)-out.Left]
	labels, states := topology.Labels(h), topology.DeviceStates(h)
	ring := circle(len(order))
	for i, g := range order {
		d := h.Devices[g]
		box := gpu{X: ring[i].X, Y: ring[i].Y, Label: island[g] + labels[g], Class: "free", Title: clip(labels[g] + " " + d.Name + " " + d.UUID)}
		switch {
		case len(holders[d.UUID]) > 0:
			box.Class, box.Ranks = "held", shortRanks(holders[d.UUID])
			box.Title += ": " + rankText(holders[d.UUID])
		case states[g] == topology.DeviceSick:
			box.Class, box.Title = "sick", clip(box.Title+": "+d.Sick)
		case states[g] == topology.DeviceBusy:
			box.Title = clip(box.Title + ": " + d.Busy)
		}
		out.GPUs = append(out.GPUs, box)
		out.Height = max(out.Height, box.Y+27)
	}
	out.Lines = links(h, order, out.GPUs, kinds)
	return out
}

func shortRanks(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return text.Spans(ranks, 2)
}

// circle returns positions for n boxes. One or two boxes are in a row. More boxes are on an ellipse, which
// grows with their number.
func circle(n int) (out []Point) {
	if n <= 2 {
		for i := range n {
			out = append(out, Point{150 + float64(2*i-n+1)*70, 24})
		}
		return out
	}
	height := 26 + 11*float64(n)
	for i := range n {
		angle := 2*math.Pi*(float64(i)+0.5)/float64(n) - math.Pi/2
		out = append(out, Point{math.Round(150 + 112*math.Sin(angle+math.Pi/2)), math.Round(24 + height - height*math.Cos(angle+math.Pi/2))})
	}
	return out
}

// links returns the lines between GPUs for all links that are better than the path between CPU sockets. The
// best links come last, so that they are drawn on top.
func links(h job.Host, order []int, boxes []gpu, kinds map[job.Link]bool) (out []link) {
	type scored struct {
		link
		score int
	}
	var all []scored
	for i, a := range order {
		for j, b := range order[:i] {
			l := topology.LinkBetween(h, a, b)
			if topology.Score(l) <= topology.Score(job.LinkSYS) {
				continue
			}
			kinds[l] = true
			line := link{X1: boxes[i].X, Y1: boxes[i].Y, X2: boxes[j].X, Y2: boxes[j].Y, Class: "pcie", Width: 1}
			if n := topology.NVLinks(l); n > 0 {
				line.Class, line.Width = "nvlink", 1+min(1.5, float64(n)/8)
			}
			if boxes[i].Class == "held" && boxes[j].Class == "held" {
				line.Class += " both"
			}
			line.Title = fmt.Sprintf("%s and %s: %s, %s", boxes[i].Label, boxes[j].Label, l, topology.LinkWords(l))
			all = append(all, scored{line, topology.Score(l)})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return a.score - b.score })
	for _, l := range all {
		out = append(out, l.link)
	}
	return out
}

// gpuLabels has the short name of each GPU, by host and UUID.
type gpuLabels map[string]string

func labelsOf(hosts []job.Host) gpuLabels {
	out := gpuLabels{}
	for _, h := range hosts {
		for i, label := range topology.Labels(h) {
			out[h.Name+"/"+h.Devices[i].UUID] = label
		}
	}
	return out
}

func (l gpuLabels) of(host, uuid string) string { return cmp.Or(l[host+"/"+uuid], uuid) }
