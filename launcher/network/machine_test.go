package network

import (
	"fmt"
	"testing"
)

// TestDistinct checks that one machine under several names is refused, with all its names in the error. Simulated
// hosts, and machines whose identity is not known, must be accepted.
func TestDistinct(t *testing.T) {
	for name, c := range map[string]struct {
		machines []string // the machines of h1, h2 and so on
		local    []bool
		own      bool // the local host is this machine itself and not a simulated host
		want     string
	}{
		"all different":          {machines: []string{"a", "b", "c"}},
		"one":                    {machines: []string{"a"}},
		"two names":              {machines: []string{"a", "b", "a"}, want: "h1 and h3 are one machine: its cores and GPUs would count more than once"},
		"three names":            {machines: []string{"a", "a", "a"}, want: "h1, h2 and h3 are one machine: its cores and GPUs would count more than once"},
		"two machines twice":     {machines: []string{"a", "b", "b", "a"}, want: "h1 and h4 are one machine; h2 and h3 are one machine: its cores and GPUs would count more than once"},
		"unknown":                {machines: []string{"", "", "a"}},
		"simulated":              {machines: []string{"a", "a"}, local: []bool{true, true}},
		"this one, two names":    {machines: []string{"a", "a"}, local: []bool{true, true}, own: true, want: "h1 and h2 are one machine: its cores and GPUs would count more than once"},
		"this one, by SSH":       {machines: []string{"a", "b"}, local: []bool{true, false}, own: true},
		"this one, and by SSH":   {machines: []string{"a", "a"}, local: []bool{true, false}, want: "h1 and h2 are one machine: its cores and GPUs would count more than once"},
		"this one, and two more": {machines: []string{"a", "b", "c"}, local: []bool{true, false, false}},
	} {
		var hosts []Host
		for i, machine := range c.machines {
			local := c.local != nil && c.local[i]
			hosts = append(hosts, Host{Name: fmt.Sprintf("h%d", i+1), Machine: machine, Local: local, Own: local && c.own})
		}
		got := ""
		if err := Distinct(hosts); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
