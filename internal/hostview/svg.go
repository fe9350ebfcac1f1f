package hostview

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/topology"
)

// canvas is an SVG drawing under construction. Lengths are in pixels.
type canvas struct {
	body          bytes.Buffer
	width, height float64
}

// reach extends the drawing so that it contains a point.
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

// text writes text at a point. With the anchor "start", the text begins at x. With "middle", its middle is at x.
func (c *canvas) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&c.body, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, xmlText(text))
	if anchor == "start" {
		c.reach(x+textWidth(text), y)
	}
}

func (c *canvas) line(a, b point, width float64, dash, title string) {
	colour := "#667"
	if dash == "none" { // an NVLink
		colour = "#5a8f29"
	}
	fmt.Fprintf(&c.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"><title>%s</title></line>`+"\n",
		a.x, a.y, b.x, b.y, colour, width, dash, xmlText(title))
}

// writeTo writes the whole drawing.
func (c *canvas) writeTo(w io.Writer) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, c.width+20, c.height+20, c.width+20, c.height+20, c.body.Bytes())
	return err
}

// textWidth returns about how wide a text is.
func textWidth(s string) float64 { return 7 * float64(len([]rune(s))) }

// xmlText returns text with the characters escaped that have a meaning in XML.
func xmlText(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text.Printable(s))) // a buffer returns no errors
	return b.String()
}

// SVG prints the hosts of l as an SVG picture.
func SVG(w io.Writer, l hostlist.List) error {
	c := &canvas{}
	if len(l.Hosts) == 1 {
		hostSVG(c, l.Hosts[0])
	} else {
		racksSVG(c, l.Hosts)
	}
	return c.writeTo(w)
}

const svgMargin = 20

// hostSVG draws the GPUs of a host on a circle, island by island, and the NICs around them. It draws the links between
// GPUs that are PHB or better, and links each NIC to the GPUs to which it is nearest.
func hostSVG(c *canvas, h job.Host) {
	title := "host " + h.Name + where(h) + ": " + gpuCount(h)
	c.text(svgMargin, 24, "start", title)
	edges := gpuEdges(h)
	legend := linkLegend(h, edges)
	a, widest := arrange(h), textWidth(title)
	for _, l := range legend {
		widest = max(widest, 40+textWidth(l.text))
	}
	left, top := svgMargin+max(0, widest-a.width)/2, 50.0
	put := func(p point) point { return point{left + p.x, top + p.y} }
	for _, e := range nicEdges(h) {
		c.line(put(a.nics[e.b]), put(a.gpus[e.a]), 1, nicDashes, h.NICs[e.b].Name+" to GPU: "+string(e.link)+", "+topology.LinkWords(e.link))
	}
	widths := edgeWidths(edges)
	for _, e := range edges {
		c.line(put(a.gpus[e.a]), put(a.gpus[e.b]), widths[e.link], dashes(e.link), string(e.link)+": "+topology.LinkWords(e.link))
	}
	for i, n := range h.NICs {
		p, w := put(a.nics[i]), nicWidth(n)
		c.box(p.x-w/2, p.y-nicHeight/2, w, nicHeight, "#dfe8f7", n.Name)
		c.text(p.x, p.y+4, "middle", n.Name)
	}
	labels, islands := topology.Labels(h), topology.Islands(h)
	of := islandOf(h, islands)
	states, words := gpuStates(h)
	for _, i := range topology.Leaves(h) {
		label, p := labels[i], put(a.gpus[i])
		if len(islands) > 1 {
			label += " " + islandName(of[i])
		}
		c.box(p.x-gpuWidth/2, p.y-gpuHeight/2, gpuWidth, gpuHeight, stateColours[states[i]], labels[i]+": "+words[i])
		c.text(p.x, p.y+4, "middle", label)
	}
	y := top + a.height + 36
	stateLegend(c, y, []job.Host{h})
	for _, l := range legend {
		y += 20
		if l.width > 0 {
			c.line(point{svgMargin, y - 4}, point{svgMargin + 30, y - 4}, l.width, l.dash, "")
		}
		c.text(svgMargin+40, y, "start", l.text)
		c.reach(0, y)
	}
}

// legendLine explains a kind of line. If its width is 0, only the text is drawn.
type legendLine struct {
	width float64
	dash  string
	text  string
}

func linkLegend(h job.Host, edges []edge) []legendLine {
	var lines []legendLine
	widths := edgeWidths(edges)
	for _, l := range linksAmong(h, func(int, int) bool { return true }) {
		line := legendLine{widths[l], dashes(l), fmt.Sprintf("%s: %s", cmp.Or(string(l), "?"), topology.LinkWords(l))}
		if !isDrawn(l) {
			line.text += " (not drawn)"
		}
		lines = append(lines, line)
	}
	if len(nicEdges(h)) > 0 {
		lines = append(lines, legendLine{1, nicDashes, "a NIC to the GPUs that it is nearest to"})
	}
	if n := len(topology.Islands(h)); n > 1 {
		lines = append(lines, legendLine{0, "", fmt.Sprintf("A to %s: islands, GPUs that are joined well", islandName(n-1))})
	}
	return lines
}

// nicWidth returns the width of the box of a NIC.
func nicWidth(n job.NIC) float64 { return textWidth(n.Name) + 8 }

// nicDashes is the dash pattern of lines to NICs.
const nicDashes = "2 3"

// dashes returns the dash pattern of the line for a link. Only NVLinks have solid lines.
func dashes(l job.Link) string {
	if topology.NVLinks(l) > 0 {
		return "none"
	}
	return "6 3"
}

// stateLegend draws the legend of the colours.
func stateLegend(c *canvas, y float64, hosts []job.Host) {
	words := []string{topology.DeviceFree: "free", topology.DeviceBusy: "busy", topology.DeviceSick: "sick"}
	if len(hosts) > 1 && slices.ContainsFunc(hosts, func(h job.Host) bool { return slices.Contains(topology.DeviceStates(h), topology.DeviceCut) }) {
		words = append(words, "cut into MIG instances")
	}
	x := float64(svgMargin)
	for state, word := range words {
		c.box(x, y-11, 14, 14, stateColours[state], "")
		c.text(x+20, y, "start", word)
		x += 80
	}
	c.reach(x, y)
}

// racksSVG draws each rack as a column of switches. A switch contains its hosts, and a host contains its GPUs.
func racksSVG(c *canvas, hosts []job.Host) {
	const line, cell = 24, 16
	racks := byRack(hosts)
	widest := 0.0 // width of the widest host: its name and its GPUs
	names := 0.0
	for _, h := range hosts {
		names = max(names, textWidth(h.Name)+12)
	}
	for _, h := range hosts {
		widest = max(widest, names+float64(len(h.Devices)*cell))
	}
	widest = max(widest, 150)
	columns := int(math.Ceil(math.Sqrt(float64(len(racks)))))
	stateLegend(c, 24, hosts)
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
				labels := topology.Labels(h)
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
