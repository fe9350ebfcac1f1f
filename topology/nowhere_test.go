package topology

import (
	"errors"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

// TestSlotLimits checks that stated slots are named if they limit the room.
func TestSlotLimits(t *testing.T) {
	const topo = "; see what GPUs there are with: gangrun topo"
	sick := pairs("h")
	sick.Devices[0].Sick = "fell off the bus"
	for _, test := range []struct {
		name, text, hint string
		want             Want
		hosts            []job.Host
		not              job.Excluded
	}{
		{"slots alone", "2 GPUs will never fit: there is room for 1 at most, as slots are stated: 1 of host h",
			"ask for fewer ranks, or state more slots", Want{2, 1, ""}, []job.Host{slotted(pairs("h"), 1)}, job.Excluded{}},
		{"slots of one of two", "8 GPUs will never fit: there is room for 6 at most, as slots are stated: 2 of host b",
			"ask for fewer ranks, or state more slots", Want{8, 1, ""}, []job.Host{pairs("a"), slotted(pairs("b"), 2)}, job.Excluded{}},
		{"slots, and too few GPUs", "9 GPUs will never fit: there is room for 6 at most, as slots are stated: 2 of host b",
			"ask for fewer ranks, or for more hosts" + topo, Want{9, 1, ""}, []job.Host{slotted(pairs("a"), 4), slotted(pairs("b"), 2)}, job.Excluded{}},
		{"slots on one host", "4 GPUs on one host will never fit: there is room for 2 at most, on host a, as slots are stated: 2 of host a, 1 of host b",
			"ask for fewer ranks, or state more slots", Want{4, 1, job.LocalityHost}, []job.Host{slotted(pairs("a"), 2), slotted(pairs("b"), 1)}, job.Excluded{}},
		{"slots, or a wider locality", "4 GPUs on one host will never fit: there is room for 3 at most, on host a, as slots are stated: 3 of host a, 1 of host b",
			"ask for fewer ranks, or state more slots, or allow a wider locality than host", Want{4, 1, job.LocalityHost}, []job.Host{slotted(pairs("a"), 3), slotted(pairs("b"), 1)}, job.Excluded{}},
		{"slots that limit nothing", "5 GPUs will never fit: there is room for 4 at most",
			"ask for fewer ranks, or for more hosts" + topo, Want{5, 1, ""}, []job.Host{slotted(pairs("a"), 4)}, job.Excluded{}},
		{"a sick GPU", "4 GPUs will never fit: there is room for 3 at most",
			"ask for fewer ranks, or for more hosts; see which GPUs are sick or excluded with: gangrun topo", Want{4, 1, ""}, []job.Host{sick}, job.Excluded{}},
		{"an excluded host", "8 GPUs will never fit: there is room for 4 at most",
			"ask for fewer ranks, or for more hosts; see which GPUs are sick or excluded with: gangrun topo", Want{8, 1, ""}, []job.Host{pairs("a"), pairs("b")}, job.Excluded{Hosts: []string{"b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			holdNone(t, test.want, test.hosts, test.not, false, test.text, test.hint)
		})
	}
}

// holdNone checks the error for a gang that does not fit.
func holdNone(t *testing.T, want Want, hosts []job.Host, not job.Excluded, ever bool, text, hint string) {
	t.Helper()
	if _, ok := check(t, want, job.Inventory{Hosts: hosts}, not); ok {
		t.Fatal("it fits")
	}
	_, err := PlaceGPUs(want, job.Inventory{Hosts: hosts}, not)
	var none *NoPlacement
	if !errors.As(err, &none) || none.Ever != ever || none.Text != text || none.Hint != hint {
		t.Errorf("got %+v\nwant %q, hint %q, ever %v", none, text, hint, ever)
	}
}

// slotted gives a host stated slots.
func slotted(h job.Host, slots int) job.Host {
	h.Slots, h.Hard = slots, true
	return h
}

// uncut returns cut with GPUs in place of the MIG instances.
func uncut(name string) job.Host {
	h := cut(name)
	for i := range h.Devices {
		h.Devices[i].GPU = ""
	}
	return h
}

// TestNowhere checks the reasons why a gang does not fit, and whether it would ever fit.
func TestNowhere(t *testing.T) {
	half := []job.Host{in(busy(dgx1v("a"), 1, 3, 4, 6), "r1", ""), in(busy(hgxH100("b"), 0, 1, 2, 3, 4), "r2", "")}
	tests := []struct {
		name  string
		want  Want
		hosts []job.Host
		not   job.Excluded
		ever  bool
		way   int
		text  string
	}{
		{"too many busy on one host", Want{8, 1, job.LocalityHost}, half, job.Excluded{}, true, 9,
			"8 GPUs on one host do not fit now: there is room for 4, on host a; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann), a-GPU4 of a (run 4 of ann), a-GPU6 of a (run 6 of ann), b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann) and 3 more"},
		{"only the host that is not excluded", Want{8, 1, job.LocalityHost}, half, job.Excluded{Hosts: []string{"a"}}, true, 5,
			"8 GPUs on one host do not fit now: there is room for 3, on host b; busy: b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann), b-GPU2 of b (run 2 of ann), b-GPU3 of b (run 3 of ann), b-GPU4 of b (run 4 of ann)"},
		{"too many for one host", Want{9, 1, job.LocalityHost}, half, job.Excluded{}, false, 0,
			"9 GPUs on one host will never fit: there is room for 8 at most, on host a"},
		{"an island in use", Want{2, 1, job.LocalityIsland}, []job.Host{busy(pairs("a"), 1, 3)}, job.Excluded{}, true, 2,
			"2 GPUs on one island do not fit now: those that are free on one host are joined worse than others of it; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann)"},
		{"a rack in use", Want{3, 2, job.LocalityRack}, half, job.Excluded{}, true, 9,
			"3 ranks of 2 GPUs in one rack do not fit now: there is room for 4, in rack r1; busy: a-GPU1 of a (run 1 of ann), a-GPU3 of a (run 3 of ann), a-GPU4 of a (run 4 of ann), a-GPU6 of a (run 6 of ann), b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann) and 3 more"},
		{"one rank that must wait", Want{1, 8, ""}, half[1:], job.Excluded{}, true, 5,
			"1 rank of 8 GPUs does not fit now: there is room for 0; busy: b-GPU0 of b (run 0 of ann), b-GPU1 of b (run 1 of ann), b-GPU2 of b (run 2 of ann), b-GPU3 of b (run 3 of ann), b-GPU4 of b (run 4 of ann)"},
		{"a rank wider than a host", Want{2, 9, ""}, half, job.Excluded{}, false, 0,
			"2 ranks of 9 GPUs will never fit: no host has 9 GPUs and a slot that a rank may use"},
		{"nothing there", Want{1, 1, ""}, nil, job.Excluded{}, false, 0,
			"1 GPU will never fit: no host has 1 GPU and a slot that a rank may use"},
		{"an excluded GPU", Want{16, 1, ""}, half, job.Excluded{Devices: []string{"b/b-GPU7", "a/b-GPU6", "b-GPU5"}}, false, 0,
			"16 GPUs will never fit: there is room for 15 at most"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := PlaceGPUs(test.want, job.Inventory{Hosts: test.hosts}, test.not)
			var none *NoPlacement
			if !errors.As(err, &none) {
				t.Fatalf("got %v, want no placement", err)
			}
			if none.Text != test.text || none.Ever != test.ever || len(none.Way) != test.way || none.Hint == "" {
				t.Errorf("got %q, ever %v, %d in the way, hint %q; want %q, %v, %d", none.Text, none.Ever, len(none.Way), none.Hint, test.text, test.ever, test.way)
			}
		})
	}
	for _, want := range []Want{{1, 1, "far"}, {0, 1, ""}, {1, 0, ""}, {-1, 1, ""}} {
		var none *NoPlacement
		if _, err := PlaceGPUs(want, job.Inventory{Hosts: half}, job.Excluded{}); err == nil || errors.As(err, &none) {
			t.Errorf("%+v: %v, want another error", want, err)
		}
	}
}
