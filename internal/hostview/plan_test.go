package hostview

import (
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/plan"
)

// pairsOf returns a host with that many GPUs, which NVLinks join in pairs.
func pairsOf(name string, gpus int) job.Host {
	h := job.Host{Name: name, Address: name}
	for i := range gpus {
		h.Devices = append(h.Devices, job.Device{UUID: "GPU" + string(rune('0'+i)), Index: i})
		row := make([]job.Link, gpus)
		for j := range row {
			switch {
			case i == j:
			case i/2 == j/2:
				row[j] = "NV4"
			default:
				row[j] = job.LinkSYS
			}
		}
		h.Links = append(h.Links, row)
	}
	return h
}

func TestPlanLevelWords(t *testing.T) {
	bare := pairsOf("h1", 4)
	bare.Links = nil
	for _, c := range []struct {
		name     string
		host     job.Host
		ranks    int
		has, not string // texts that the output has, and that it does not have
	}{
		{"links that are known", pairsOf("h1", 4), 2, "level island, on one host, and as close to each other as GPUs get there\n", "is not known"},
		{"links that are not", bare, 2, "level island, on one host, though how its GPUs are linked is not known, so that they count as linked alike\n", "as close"},
		{"why, of links that are not", bare, 2, "how GPUs are linked is not known of 1 pair", "joined better"},
		{"a gang without links", bare, 1, "level island, on one host, and as close to each other as GPUs get there\n", "is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := plan.Gang{Ranks: c.ranks, GPUs: 1}
			choice, err := g.Place([]job.Host{c.host})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := (Plan{Gang: g, Hosts: []job.Host{c.host}, Choice: choice}).Text(&b); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), c.has) || strings.Contains(b.String(), c.not) {
				t.Errorf("got %s\nwant it with %q and without %q", b.String(), c.has, c.not)
			}
		})
	}
}

// TestPlanPrintsNoControls checks that no control character in the name of a file or a process reaches the terminal.
func TestPlanPrintsNoControls(t *testing.T) {
	h := pairsOf("h\x1b[2J", 4)
	h.Rack, h.Devices[3].Busy, h.Devices[2].CPUs = "r\x07", "used by pid 1 (\x1b]0;x\x07)", "0\x1b"
	g := plan.Gang{Ranks: 2, GPUs: 1}
	c, err := g.Place([]job.Host{h})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (Plan{Gang: g, Hosts: []job.Host{h}, Choice: c}).Text(&b); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
		t.Errorf("a control character at %d of %q", i, b.String())
	}
}
