package hostview

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/probe"
)

func TestTopoSVG(t *testing.T) {
	for name, l := range awkwardLists() {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := SVG(&b, l); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			elements := map[string]int{}
			for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%v in\n%s", err, b.String())
				}
				switch token := token.(type) {
				case xml.StartElement:
					elements[token.Name.Local]++
					for _, a := range token.Attr {
						if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
							t.Errorf("<%s> has %s=%q", token.Name.Local, a.Name.Local, a.Value)
						}
						if a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
							t.Errorf("<%s> has %s=%q", token.Name.Local, a.Name.Local, a.Value)
						}
					}
				case xml.CharData:
					text.Write(token)
					text.WriteString("\n")
				}
			}
			if elements["svg"] != 1 {
				t.Errorf("%d svg elements", elements["svg"])
			}
			for _, h := range l.Hosts {
				if !strings.Contains(text.String(), h.Name) {
					t.Errorf("no host %q in %q", h.Name, text.String())
				}
				_, words := gpuStates(h)
				for i, label := range topology.Labels(h) {
					if want := label + ": " + words[i]; !strings.Contains(text.String(), want) {
						t.Errorf("no %q in %q", want, text.String())
					}
				}
			}
			// There are lines for two pairs of GPUs, and from a NIC to two GPUs.
			if name == "one" && elements["line"] < 2+2 {
				t.Errorf("%d lines", elements["line"])
			}
		})
	}
}

// TestTopoPictureIsLegible checks that no boxes of a picture overlap, and that all are within the picture. Every label
// has a box of its own.
func TestTopoPictureIsLegible(t *testing.T) {
	for _, file := range []string{"dgx-1v", "dgx-a100", "hgx-h100", "k80-driver-367", "pcie-8-two-sockets", "rtx-4-pairs", "workstation-na", "wsl"} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "topology", "probe", "testdata", file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			h := job.Host{Name: file}
			if h.Devices, h.Links, h.NICs, err = probe.ParseTopo(string(text)); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := SVG(&b, hostlist.List{List: inventory.List{Hosts: []job.Host{h}}}); err != nil {
				t.Fatal(err)
			}
			legible(t, b.String(), 1+len(h.Devices)+len(h.NICs)+3)
		})
	}
}

// legible checks that a picture has as many boxes as wanted, including the background. No box may overlap another, and
// all must be within the background.
func legible(t *testing.T, text string, want int) {
	t.Helper()
	var picture struct {
		Width  float64 `xml:"width,attr"`
		Height float64 `xml:"height,attr"`
		Boxes  []struct {
			X     float64 `xml:"x,attr"`
			Y     float64 `xml:"y,attr"`
			W     string  `xml:"width,attr"`
			H     string  `xml:"height,attr"`
			Title string  `xml:"title"`
		} `xml:"rect"`
	}
	if err := xml.Unmarshal([]byte(text), &picture); err != nil {
		t.Fatal(err)
	}
	if len(picture.Boxes) != want {
		t.Errorf("%d boxes, want %d", len(picture.Boxes), want)
	}
	type box struct {
		x, y, w, h float64
		title      string
	}
	var boxes []box
	for _, r := range picture.Boxes[1:] {
		w, err := strconv.ParseFloat(r.W, 64)
		if err != nil {
			t.Fatal(err)
		}
		h, err := strconv.ParseFloat(r.H, 64)
		if err != nil {
			t.Fatal(err)
		}
		b := box{r.X, r.Y, w, h, r.Title}
		boxes = append(boxes, b)
	}
	for i, a := range boxes {
		if a.x < 0 || a.y < 0 || a.x+a.w > picture.Width || a.y+a.h > picture.Height {
			t.Errorf("%q lies outside: %+v of %gx%g", a.title, a, picture.Width, picture.Height)
		}
		for _, b := range boxes[:i] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				t.Errorf("%q lies on %q", a.title, b.title)
			}
		}
	}
}

// TestTopoEdgeWidths checks that a link of more NVLinks is drawn wider, whatever the numbers of NVLinks are.
func TestTopoEdgeWidths(t *testing.T) {
	for _, c := range []struct {
		links []job.Link
		want  map[job.Link]float64
	}{
		{nil, map[job.Link]float64{}},
		{[]job.Link{"NV18", "NV18"}, map[job.Link]float64{"NV18": 1}},
		{[]job.Link{"NV1", "PIX", "NV2", "NV1"}, map[job.Link]float64{"NV1": 1, "NV2": 3.5, "PIX": 1}},
		{[]job.Link{"NV12", "NV4", "NV1", "NV3", "NV6"}, map[job.Link]float64{"NV1": 1, "NV3": 3.5, "NV4": 6, "NV6": 8.5, "NV12": 8.5}},
	} {
		var edges []edge
		for _, l := range c.links {
			edges = append(edges, edge{link: l})
		}
		if got := edgeWidths(edges); !maps.Equal(got, c.want) {
			t.Errorf("%v are drawn %v wide, want %v", c.links, got, c.want)
		}
	}
}

// dotWords splits text in the DOT language into words and quoted strings, as the grammar of the language defines them.
func dotWords(text string) ([]string, error) {
	var words []string
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			j := i + 1
			for ; j < len(text) && text[j] != '"'; j++ {
				if text[j] == '\n' {
					return nil, fmt.Errorf("a string goes over the end of a line: %q", text[i:j])
				}
				if text[j] == '\\' {
					j++
				}
			}
			if j >= len(text) {
				return nil, fmt.Errorf("a string does not end: %q", text[i:])
			}
			words = append(words, text[i:j+1])
			i = j + 1
		case c == ' ' || c == '\n':
			i++
		case strings.ContainsRune("{}[]=,;", rune(c)):
			words = append(words, string(c))
			i++
		default:
			j := i
			for j < len(text) && !strings.ContainsRune("{}[]=,; \n\"", rune(text[j])) {
				j++
			}
			words = append(words, text[i:j])
			i = j
		}
	}
	return words, nil
}

func TestTopoDot(t *testing.T) {
	for name, l := range awkwardLists() {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := Dot(&b, l); err != nil {
				t.Fatal(err)
			}
			words, err := dotWords(b.String())
			if err != nil {
				t.Fatal(err)
			}
			depth, ends, nodes := 0, 0, map[string]bool{}
			for i, w := range words {
				switch w {
				case "{", "[":
					depth++
					if w == "[" && words[i-1] != "node" && (i < 2 || words[i-2] != "--") {
						nodes[words[i-1]] = true
					}
				case "}", "]":
					depth--
					if depth == 0 {
						ends++
					}
				case "--":
					for _, end := range []string{words[i-1], words[i+1]} {
						if !nodes[end] && !slices.Contains(words[i:], end) {
							t.Errorf("an edge to %s, which is no node", end)
						}
					}
				}
			}
			if depth != 0 || ends != 1 || words[0] != "graph" {
				t.Errorf("braces do not match in\n%s", b.String())
			}
			gpus := 0
			for _, h := range l.Hosts {
				gpus += len(h.Devices)
			}
			want := gpus + len(l.Hosts[0].NICs)
			if len(l.Hosts) > 1 {
				want = 2 * len(l.Hosts) // each host has a switch of its own
			}
			if len(nodes) != want {
				t.Errorf("nodes %v, want %d", nodes, want)
			}
		})
	}
}
