package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
)

// canvas is an SVG drawing that is being made. Lengths are in pixels.
type canvas struct {
	body          bytes.Buffer
	width, height float64
}

// reach makes the drawing at least as large as to hold a point.
func (c *canvas) reach(x, y float64) {
	c.width, c.height = max(c.width, x), max(c.height, y)
}

func (c *canvas) box(x, y, w, h float64, fill, title string) {
	fmt.Fprintf(&c.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="%s" stroke="#444">`, x, y, w, h, fill)
	if title != "" {
		fmt.Fprintf(&c.body, "<title>%s</title>", xmlText(title))
	}
	c.body.WriteString("</rect>\n")
	c.reach(x+w, y+h)
}

// text writes from x on, or with anchor middle around it.
func (c *canvas) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&c.body, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, xmlText(text))
	if anchor == "start" {
		c.reach(x+textWidth(text), y)
	}
}

func (c *canvas) line(a, b point, width float64, dash, title string) {
	fmt.Fprintf(&c.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#667" stroke-width="%.1f" stroke-dasharray="%s"><title>%s</title></line>`+"\n",
		a.x, a.y, b.x, b.y, width, dash, xmlText(title))
}

// writeTo writes the whole drawing.
func (c *canvas) writeTo(w io.Writer) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, c.width+20, c.height+20, c.width+20, c.height+20, c.body.Bytes())
	return err
}

// point is a place in a drawing.
type point struct{ x, y float64 }

// textWidth is about how wide a text is.
func textWidth(text string) float64 { return 7 * float64(len([]rune(text))) }

// xmlText escapes text.
func xmlText(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(printable(text))) // a buffer takes everything
	return b.String()
}

func printTopoSVG(w io.Writer, l hostList) error {
	c := &canvas{}
	if len(l.Hosts) == 1 {
		hostSVG(c, l.Hosts[0])
	} else {
		racksSVG(c, l.Hosts)
	}
	return c.writeTo(w)
}

const (
	svgGPUWidth, svgGPUHeight = 64, 26
	svgMargin                 = 20
)

// hostSVG draws the GPUs of a host on a circle, island by island, with the links
// between them that are PHB or better, and around them the NICs, each joined to
// the GPUs to which it is nearest.
func hostSVG(c *canvas, h job.Host) {
	c.text(svgMargin, 24, "start", "host "+h.Name+where(h)+": "+gpuCount(h))
	var order []int
	islands := topology.Islands(h)
	for _, island := range islands {
		order = append(order, island...)
	}
	radius := max(90, float64(len(order))*svgGPUWidth*1.3/(2*math.Pi))
	widest := 0.0
	for _, n := range h.NICs {
		widest = max(widest, nicWidth(n))
	}
	outer := max(radius+60+widest/2, float64(len(h.NICs))*(widest+12)/(2*math.Pi))
	middle := point{svgMargin + outer + max(svgGPUWidth, widest)/2, 60 + outer}
	angle, at := map[int]float64{}, map[int]point{}
	for k, i := range order {
		angle[i] = 2*math.Pi*float64(k)/float64(len(order)) - math.Pi/2
		at[i] = around(middle, radius, angle[i])
	}
	for _, e := range gpuEdges(h) {
		c.line(at[e.a], at[e.b], edgeWidth(e.link), dashes(e.link), string(e.link)+": "+topology.LinkWords(e.link))
	}
	nics(c, h, middle, outer, angle, at)
	labels, of := gpuLabels(h), islandOf(h, islands)
	states, words := gpuStates(h)
	for _, i := range order {
		label := labels[i]
		if len(islands) > 1 {
			label += " " + islandName(of[i])
		}
		c.box(at[i].x-svgGPUWidth/2, at[i].y-svgGPUHeight/2, svgGPUWidth, svgGPUHeight, stateColours[states[i]], labels[i]+": "+words[i])
		c.text(at[i].x, at[i].y+4, "middle", label)
	}
	c.reach(2*middle.x-svgMargin, middle.y+outer)
	y := middle.y + outer + 36
	stateLegend(c, y)
	for _, l := range linksAmong(h, func(int, int) bool { return true }) {
		y += 20
		text := fmt.Sprintf("%s: %s", cmp.Or(string(l), "?"), topology.LinkWords(l))
		if isDrawn(l) {
			c.line(point{svgMargin, y - 4}, point{svgMargin + 30, y - 4}, edgeWidth(l), dashes(l), string(l))
		} else {
			text += ", not drawn"
		}
		c.text(svgMargin+40, y, "start", text)
		c.reach(0, y)
	}
}

// nics draws the NICs on the outer circle, as near to their GPUs as even
// distances allow.
func nics(c *canvas, h job.Host, middle point, outer float64, angle map[int]float64, at map[int]point) {
	type place struct {
		nic  int
		near []int
		wish float64
	}
	var places []place
	for i, n := range h.NICs {
		p := place{nic: i, near: nearestGPUs(h, n), wish: 1.5 * math.Pi}
		var sum point
		for _, g := range p.near {
			sum = around(sum, 1, angle[g])
		}
		if len(p.near) > 0 {
			p.wish = math.Mod(math.Atan2(sum.y, sum.x)+2.5*math.Pi, 2*math.Pi) // from the top, as the GPUs go
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.wish, b.wish) })
	step := 2 * math.Pi / float64(max(1, len(places)))
	var turn point // the mean of what turns each even place to the one wished for
	for k, p := range places {
		turn = around(turn, 1, p.wish-step*float64(k))
	}
	first := math.Atan2(turn.y, turn.x) - math.Pi/2
	for k, p := range places {
		n := h.NICs[p.nic]
		here := around(middle, outer, first+step*float64(k))
		for _, g := range p.near {
			c.line(here, at[g], 1, "2 3", n.Name+" to GPU: "+string(nicLink(n, g)))
		}
		w := nicWidth(n)
		c.box(here.x-w/2, here.y-10, w, 20, "#dfe8f7", n.Name)
		c.text(here.x, here.y+4, "middle", n.Name)
	}
}

// nicWidth is how wide a NIC is drawn.
func nicWidth(n job.NIC) float64 { return textWidth(n.Name) + 8 }

// around is the point at an angle and a distance from another.
func around(p point, distance, angle float64) point {
	return point{p.x + distance*math.Cos(angle), p.y + distance*math.Sin(angle)}
}

// dashes tells links over PCIe from NVLinks.
func dashes(l job.Link) string {
	if topology.NVLinks(l) > 0 {
		return "none"
	}
	return "6 3"
}

// stateLegend says what the colours are.
func stateLegend(c *canvas, y float64) {
	x := float64(svgMargin)
	for state, word := range []string{gpuFree: "free", gpuBusy: "busy", gpuSick: "sick"} {
		c.box(x, y-11, 14, 14, stateColours[state], "")
		c.text(x+20, y, "start", word)
		x += 80
	}
	c.reach(x, y)
}

// racksSVG draws racks as columns of switches, which hold hosts, which hold GPUs.
func racksSVG(c *canvas, hosts []job.Host) {
	const line, cell = 24, 16
	racks := byRack(hosts)
	widest := 0.0 // name and GPUs of a host
	names := 0.0
	for _, h := range hosts {
		names = max(names, textWidth(h.Name)+12)
	}
	for _, h := range hosts {
		widest = max(widest, names+float64(len(h.Devices)*cell))
	}
	widest = max(widest, 150)
	columns := int(math.Ceil(math.Sqrt(float64(len(racks)))))
	stateLegend(c, 24)
	x, y, tallest := float64(svgMargin), 44.0, 0.0
	for r, rack := range racks {
		if r > 0 && r%columns == 0 {
			x, y, tallest = svgMargin, y+tallest+16, 0
		}
		height := 26.0
		for _, s := range rack.switches {
			height += 34 + float64(len(s.hosts)*line)
		}
		c.box(x, y, widest+32, height, "#fafafa", "")
		c.text(x+8, y+17, "start", "rack "+cmp.Or(rack.name, "not known"))
		at := y + 26
		for _, s := range rack.switches {
			c.box(x+8, at, widest+16, 26+float64(len(s.hosts)*line), "#ffffff", "")
			c.text(x+16, at+17, "start", "switch "+cmp.Or(s.name, "not known"))
			for i, h := range s.hosts {
				top := at + 24 + float64(i*line)
				c.text(x+16, top+13, "start", h.Name)
				labels := gpuLabels(h)
				states, words := gpuStates(h)
				for g := range h.Devices {
					c.box(x+16+names+float64(g*cell), top+2, cell-3, cell-3, stateColours[states[g]], labels[g]+": "+words[g])
				}
			}
			at += 34 + float64(len(s.hosts)*line)
		}
		x += widest + 48
		tallest = max(tallest, height)
	}
}
