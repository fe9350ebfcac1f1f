// Package compare finds the hosts whose facts differ from those of most other hosts.
package compare

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// Difference is a component whose versions on the hosts differ.
type Difference struct {
	Kind  job.VersionKind
	Name  string
	Hosts []string // the hosts that do not have the usual version
	Rest  int      // how many hosts have the usual version
	Text  string
}

// Differences returns the components whose versions differ, in the order in which the facts
// name them.
func Differences(facts []job.Facts) (list []Difference) {
	type thing struct {
		kind job.VersionKind
		name string
	}
	var things []thing
	version := map[thing]map[string]string{} // by host
	for _, f := range facts {
		for _, v := range f.Versions {
			t := thing{v.Kind, v.Name}
			if version[t] == nil {
				things = append(things, t)
				version[t] = map[string]string{}
			}
			version[t][f.Host] = v.Version
		}
	}
	for _, t := range things {
		values := make([]string, len(facts))
		for i, f := range facts {
			values[i] = version[t][f.Host]
			asked := t.kind == job.VersionDriver || slices.ContainsFunc(f.Versions, func(v job.VersionFact) bool { return v.Kind == t.kind })
			if values[i] == "" && asked {
				values[i] = "none"
			}
		}
		odd, usual := Odd(values)
		if Count(odd) == 0 {
			continue
		}
		d := Difference{Kind: t.kind, Name: t.name}
		var said []string // versions
		of := map[string][]string{}
		for i, f := range facts {
			if values[i] == "" {
				continue
			}
			if !odd[i] {
				d.Rest++
				continue
			}
			d.Hosts = append(d.Hosts, f.Host)
			if of[values[i]] == nil {
				said = append(said, values[i])
			}
			of[values[i]] = append(of[values[i]], f.Host)
		}
		switch {
		case len(said) == 1:
			d.Text = t.name + " (" + said[0] + " instead of " + usual + ")"
		default:
			for i, v := range said {
				said[i] = v + " on " + text.Some(of[v], len(of[v]))
			}
			if usual != "" {
				said = append(said, "else "+usual)
			}
			d.Text = t.name + " (" + strings.Join(said, "; ") + ")"
		}
		list = append(list, d)
	}
	return list
}

// Odd finds the usual value, which is the value of more than half of the hosts, and marks as
// odd the values that differ from it. If no value is usual, all known values are odd. An empty
// value is unknown and never odd.
func Odd(values []string) (odd []bool, usual string) {
	times, known := map[string]int{}, 0
	for _, v := range values {
		if v != "" {
			times[v]++
			known++
		}
	}
	odd = make([]bool, len(values))
	if len(times) < 2 {
		return odd, ""
	}
	for v, n := range times {
		if 2*n > known {
			usual = v
		}
	}
	for i, v := range values {
		odd[i] = v != "" && v != usual
	}
	return odd, usual
}
