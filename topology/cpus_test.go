package topology

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/job"
)

func TestUnite(t *testing.T) {
	for _, test := range []struct {
		want  string
		lists []string
	}{
		{"0-15,32-47", []string{"0-15,32-47"}},
		{"0-15,32-47", []string{"0-15,32-47", "0-15,32-47"}},
		{"0-31,64-95", []string{"16-31,80-95", "0-15,64-79"}},
		{"0,2,4-7", []string{"4-6", "2,0", "5-7"}},
		{"0-9", []string{"0-9", "3", "4-5"}},
		{"7", []string{"", "7"}},
		{"", []string{"", ""}},
		{"1", []string{"1", "9-3"}},
		{"1", []string{"1", "x"}},
		{"1", []string{"1", "2,"}},
		{"none", []string{"none"}},
	} {
		if got := unite(slices.Clone(test.lists)); got != test.want {
			t.Errorf("%q together are %q, want %q", test.lists, got, test.want)
		}
	}
}

// TestCPUsOfARank checks that a rank may use the CPUs of all its GPUs.
func TestCPUsOfARank(t *testing.T) {
	h := hgxH100("h")
	for i := range h.Devices {
		h.Devices[i].CPUs = []string{"0-31", "32-63"}[i/4]
	}
	for gpus, want := range map[int]string{1: "0-31", 4: "0-31", 8: "0-63"} {
		c, err := PlaceGPUs(Want{1, gpus, ""}, job.Inventory{Hosts: []job.Host{h}}, job.Excluded{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Placement.Ranks[0].CPUs; got != want {
			t.Errorf("a rank of %d GPUs has the CPUs %q, want %q", gpus, got, want)
		}
	}
}

// cpuSet returns the CPUs of lists that can be read.
func cpuSet(t *testing.T, lists ...string) map[int]bool {
	t.Helper()
	set := map[int]bool{}
	for _, part := range strings.Split(strings.Join(lists, ","), ",") {
		if part == "" {
			continue
		}
		low, high, found := strings.Cut(part, "-")
		if !found {
			high = low
		}
		from, err := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil {
			t.Fatalf("%q is no list of CPUs", lists)
		}
		for ; from <= to; from++ {
			set[from] = true
		}
	}
	return set
}

func FuzzUnite(f *testing.F) {
	f.Add("0-15,32-47", "16-31")
	f.Add("3", "")
	f.Add("9-3", ",")
	f.Add("4294967295", "0-4294967295")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := unite([]string{a, b})
		if unite([]string{b, a}) != got {
			t.Fatalf("%q and %q depend on their order", a, b)
		}
		if got == "" || got == a && got == b {
			return
		}
		spans, ok := cpuSpans(got)
		if !ok {
			t.Fatalf("%q and %q give %q", a, b, got)
		}
		within := func(cpu uint64) bool {
			return slices.ContainsFunc(spans, func(s [2]uint64) bool { return s[0] <= cpu && cpu <= s[1] })
		}
		for _, list := range []string{a, b} {
			parts, _ := cpuSpans(list)
			for _, s := range parts {
				if !within(s[0]) || !within(s[1]) {
					t.Fatalf("%q of %q and %q lacks %v", got, a, b, s)
				}
			}
		}
		for i := 1; i < len(spans); i++ {
			if spans[i][0] <= spans[i-1][1]+1 {
				t.Fatalf("%q and %q give %q, which can be shorter", a, b, got)
			}
		}
	})
}

func TestCountCPUs(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0-15,32-47": 32, "7,9-10": 3, "x": 0, "3-1": 0, "0-": 0} {
		if got := CountCPUs(list); got != want {
			t.Errorf("%q: got %d, want %d", list, got, want)
		}
	}
}
