package nvml

import (
	"reflect"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestReadLinks(t *testing.T) {
	bus := func(i int) string { return healthyBus[i] }
	pair := func(i, n int) map[int]any { // n links to the other GPU of the pair
		links := map[int]any{}
		for k := range n {
			links[3*k] = bus(i ^ 1)
		}
		return links
	}
	for name, test := range map[string]struct {
		change func(i int, g *fakeGPU)
		of     [6]job.Link // 0-1 0-2 0-3 1-2 1-3 2-3
		says   map[int]string
	}{
		"pairs":      {func(i int, g *fakeGPU) { g.links = pair(i, 4) }, [6]job.Link{"NV4", "SYS", "SYS", "SYS", "SYS", "NV4"}, nil},
		"switches":   {nil, [6]job.Link{"NV18", "NV18", "NV18", "NV18", "NV18", "NV18"}, nil},
		"a few down": {func(i int, g *fakeGPU) { delete(g.links, i*i) }, [6]job.Link{"NV17", "NV17", "NV17", "NV17", "NV17", "NV17"}, nil},
		"one without": {func(i int, g *fakeGPU) {
			if i == 2 {
				g.links = nil
			}
		}, [6]job.Link{"NV18", "SYS", "NV18", "SYS", "NV18", "SYS"}, nil},
		"other end": {func(i int, g *fakeGPU) {
			g.links = nil
			if i == 0 {
				g.links = pair(0, 2)
			}
		}, [6]job.Link{"NV2", "SYS", "SYS", "SYS", "SYS", "SYS"}, nil},
		"NPU":        {func(i int, g *fakeGPU) { g.links = map[int]any{0: PeerNPU} }, [6]job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS"}, nil},
		"hidden GPU": {func(i int, g *fakeGPU) { g.links = map[int]any{0: "00000000:AA:00.0"} }, [6]job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS"}, nil},
		"old driver": {func(i int, g *fakeGPU) { g.links = map[int]any{1: otherEnd{notSupported, Answer{Text: bus(i ^ 2)}}} }, [6]job.Link{"SYS", "NV1", "SYS", "SYS", "NV1", "SYS"}, nil},
		"past its last": {func(i int, g *fakeGPU) {
			g.links = pair(i, 2)
			g.links[3] = error(said{"Invalid Argument", ErrNotFound})
		}, [6]job.Link{"NV1", "SYS", "SYS", "SYS", "SYS", "NV1"}, nil},
		"gaps": {func(i int, g *fakeGPU) { g.links = pair(i, 2); g.links[0] = error(notSupported) }, [6]job.Link{"NV1", "SYS", "SYS", "SYS", "SYS", "NV1"}, nil},
		"unknown end": {func(i int, g *fakeGPU) {
			g.links = nil
			if i == 0 {
				g.links = map[int]any{5: PeerUnknown}
			}
		},
			[6]job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS"}, map[int]string{0: "NVLink 5: it leads to 0000:ff:00.0, and the driver does not know what that is"}},
		"kind fails": {func(i int, g *fakeGPU) {
			g.links = nil
			if i == 0 {
				g.links = map[int]any{5: otherEnd{unknownError, Answer{Text: "0000:FF:00.0"}}}
			}
		},
			[6]job.Link{"SYS", "SYS", "SYS", "SYS", "SYS", "SYS"}, map[int]string{0: "NVLink 5: it leads to 0000:ff:00.0, and its kind is not known: Unknown Error"}},
		"peer fails": {func(i int, g *fakeGPU) {
			if i == 3 {
				g.links = map[int]any{2: otherEnd{num(PeerGPU), unknownError}}
			}
		},
			[6]job.Link{"NV18", "NV18", "SYS", "NV18", "SYS", "SYS"}, map[int]string{3: "NVLink 2: Unknown Error"}},
		"peer is rubbish": {func(i int, g *fakeGPU) {
			if i == 3 {
				g.links = map[int]any{2: "x"}
			}
		},
			[6]job.Link{"NV18", "NV18", "SYS", "NV18", "SYS", "SYS"}, map[int]string{3: `NVLink 2: "x" is no PCI bus id, as in 0000:3b:00.0`}},
		"one fails": {func(i int, g *fakeGPU) {
			if i == 0 {
				g.links[7] = error(unknownError)
			}
		},
			[6]job.Link{"NV17", "NV17", "NV17", "NV18", "NV18", "NV18"}, map[int]string{0: "NVLink 7: Unknown Error"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(fakeHost(4, test.change), nobody)
			sound(t, r)
			l := r.Links
			if got := [6]job.Link{l[0][1], l[0][2], l[0][3], l[1][2], l[1][3], l[2][3]}; got != test.of {
				t.Errorf("got %q, want %q", got, test.of)
			}
			for i, d := range r.Devices {
				if d.Errors["links"] != test.says[i] {
					t.Errorf("GPU %d: %q, want %q", i, d.Errors["links"], test.says[i])
				}
			}
		})
	}
}

// healthyBus has the bus IDs of the fake GPUs, as a driver writes them.
var healthyBus = []string{"00000000:10:00.0", "00000000:20:00.0", "00000000:30:00.0", "00000000:40:00.0"}

func TestReadAncestors(t *testing.T) {
	l := fakeHost(4, func(_ int, g *fakeGPU) { g.links = nil })
	g := func(i int) *fakeGPU { return l.gpus[i].(*fakeGPU) }
	g(0).ancestors = map[GPU]any{g(1): job.LinkPIX, g(2): job.LinkNODE, g(3): unknownError}
	g(1).ancestors = map[GPU]any{g(2): job.LinkPXB, g(3): job.LinkPHB}
	r := Read(l, nobody)
	sound(t, r)
	if want := [][]job.Link{{"", "PIX", "NODE", ""}, {"PIX", "", "PXB", "PHB"}, {"NODE", "PXB", "", "SYS"}, {"", "PHB", "SYS", ""}}; !reflect.DeepEqual(r.Links, want) {
		t.Errorf("%q", r.Links)
	}
	for i, want := range []string{"to GPU 3: Unknown Error", "", "", "to GPU 0: Unknown Error"} {
		if got := r.Devices[i].Errors["links"]; got != want {
			t.Errorf("GPU %d: %q, want %q", i, got, want)
		}
	}
}
