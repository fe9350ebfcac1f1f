package preflight

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/preflight/compare"
)

var versionsCheck = Check{
	Code: "versions",
	Asks: "Do all machines have the same versions of the NVIDIA driver, of the shared libraries that the program loads (also CUDA, NCCL and MPI), of Python and of the packages that the script imports?",
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
		for _, d := range compare.Differences(facts) {
			if d.Kind == job.VersionDriver && s.GPUs == 0 {
				continue
			}
			rest := ""
			if d.Rest > 0 {
				rest = " as on the other " + text.Count(d.Rest, "host")
			}
			i := slices.IndexFunc(hits, func(h Hit) bool { return slices.Equal(h.Hosts, d.Hosts) && h.Values["rest"] == rest })
			if i < 0 {
				i = len(hits)
				hits = append(hits, Hit{Signature: "versions-differ", Hosts: d.Hosts, Values: map[string]string{"rest": rest}})
				texts = append(texts, nil)
			}
			texts[i] = append(texts[i], d.Text)
		}
		for i, h := range hits {
			h.Values["what"] = names(texts[i])
		}
		return hits
	},
}
