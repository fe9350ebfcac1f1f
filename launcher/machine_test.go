package launcher

import (
	"errors"
	"slices"
	"testing"
)

// One machine under several names is refused, with all of them; pretended hosts, and
// machines that tell nothing of themselves, are not.
func TestDistinct(t *testing.T) {
	for name, c := range map[string]struct {
		machines []string // of h1, h2 and so on
		local    []bool
		own      bool // this machine is not pretended
		dead     int  // the number of one that was not reached
		want     string
	}{
		"all different":          {machines: []string{"a", "b", "c"}},
		"one":                    {machines: []string{"a"}},
		"two names":              {machines: []string{"a", "b", "a"}, want: "h1 and h3 are one machine: its cores and GPUs would count more than once"},
		"three names":            {machines: []string{"a", "a", "a"}, want: "h1, h2 and h3 are one machine: its cores and GPUs would count more than once"},
		"two machines twice":     {machines: []string{"a", "b", "b", "a"}, want: "h1 and h4 are one machine; h2 and h3 are one machine: its cores and GPUs would count more than once"},
		"nothing is told":        {machines: []string{"", "", "a"}},
		"one was not reached":    {machines: []string{"a", "a"}, dead: 2},
		"pretended":              {machines: []string{"a", "a"}, local: []bool{true, true}},
		"this one, two names":    {machines: []string{"a", "a"}, local: []bool{true, true}, own: true, want: "h1 and h2 are one machine: its cores and GPUs would count more than once"},
		"this one, by SSH":       {machines: []string{"a", "b"}, local: []bool{true, false}, own: true},
		"this one, and by SSH":   {machines: []string{"a", "a"}, local: []bool{true, false}, want: "h1 and h2 are one machine: its cores and GPUs would count more than once"},
		"this one, and two more": {machines: []string{"a", "b", "c"}, local: []bool{true, false, false}},
	} {
		var agents []*remote
		for i, machine := range c.machines {
			a := &remote{host: fourHosts()[i].Name, machine: machine}
			a.link.Local = c.local != nil && c.local[i]
			a.link.Own = a.link.Local && c.own
			if i+1 == c.dead {
				a = nil
			}
			agents = append(agents, a)
		}
		got := ""
		if err := distinct(agents); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The probe tells it before it looks for a network.
func TestProbeOfOneMachineTwice(t *testing.T) {
	f := &fakeHosts{machines: map[string]string{"h1": "a", "h2": "b", "h3": "a", "h4": "c"}}
	hosts := slices.Clone(fourHosts())
	l := New(Options{Dialer: f, Hosts: hosts})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	found, unreached, err := l.Probe(t.Context())
	var twice *TwiceError
	if !errors.As(err, &twice) || len(unreached) > 0 || len(found) != 4 {
		t.Fatalf("found %v, not reached %v, %v", found, unreached, err)
	}
	if got, want := twice.Hint(), "name it once, with as many slots as it is to have: --hosts h1:N, or h1 slots=N in a hostfile"; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}
