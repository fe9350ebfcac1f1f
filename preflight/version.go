package preflight

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

var versionsCheck = Check{
	Code: "versions",
	Asks: "Are the NVIDIA driver, the shared libraries that the program loads (CUDA, NCCL and MPI among them), Python and the packages that the script imports of the same version on every machine?",
	// Other programs need other libraries.
	DependsOn: []string{"program-same", "program-libraries"},
	Problems: []Problem{
		{"versions-differ", job.SeverityWarning, "",
			"not of the same version on {hosts}{rest}: {what}",
			"install the same versions everywhere, or keep them on a shared file system: ranks with different versions of NCCL, CUDA, MPI or the framework may hang or fail when they meet"},
	},
	Judge: func(s job.Spec, facts []job.Facts) []Hit {
		var hits []Hit
		var texts [][]string // of each
		for _, d := range differences(facts) {
			if d.kind == job.VersionDriver && s.GPUs == 0 {
				continue
			}
			rest := ""
			if d.rest > 0 {
				rest = " as on the other " + count(d.rest, "host")
			}
			i := slices.IndexFunc(hits, func(h Hit) bool { return slices.Equal(h.Hosts, d.hosts) && h.Values["rest"] == rest })
			if i < 0 {
				i = len(hits)
				hits = append(hits, Hit{Signature: "versions-differ", Hosts: d.hosts, Values: map[string]string{"rest": rest}})
				texts = append(texts, nil)
			}
			texts[i] = append(texts[i], d.text)
		}
		for i, h := range hits {
			h.Values["what"] = names(texts[i])
		}
		return hits
	},
}

// difference is something that is not of the same version on every host.
type difference struct {
	kind  job.VersionKind
	name  string
	hosts []string // the odd ones
	rest  int      // how many others there are
	text  string
}

// differences lists what differs, in the order of the facts.
func differences(facts []job.Facts) (list []difference) {
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
		odd, usual := odds(values)
		if tally(odd) == 0 {
			continue
		}
		d := difference{kind: t.kind, name: t.name}
		var said []string // versions
		of := map[string][]string{}
		for i, f := range facts {
			if values[i] == "" {
				continue
			}
			if !odd[i] {
				d.rest++
				continue
			}
			d.hosts = append(d.hosts, f.Host)
			if of[values[i]] == nil {
				said = append(said, values[i])
			}
			of[values[i]] = append(of[values[i]], f.Host)
		}
		switch {
		case len(said) == 1:
			d.text = t.name + " (" + said[0] + " instead of " + usual + ")"
		default:
			for i, v := range said {
				said[i] = v + " on " + names(of[v])
			}
			if usual != "" {
				said = append(said, "else "+usual)
			}
			d.text = t.name + " (" + strings.Join(said, "; ") + ")"
		}
		list = append(list, d)
	}
	return list
}

// odds says which values are not that of more than half, all that are known where
// there is none; unknown ones are empty, and never odd.
func odds(values []string) (odd []bool, usual string) {
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
