package preflight

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
)

// Static runs the static checks. facts has the Facts of each host of the gang, in node order. Static returns
// the findings in the order of Checks. If several hosts have the same finding, Static returns the finding once:
// its Host is then empty, and its Text names the hosts.
func Static(spec job.Spec, facts []job.Facts) []job.Finding {
	var findings []job.Finding
	failed := make(map[string]map[string]bool) // check, host
	for _, c := range checks {
		if c.Judge == nil {
			continue
		}
		failed[c.Code] = make(map[string]bool)
		var sound []job.Facts
		for _, f := range facts {
			if slices.ContainsFunc(c.DependsOn, func(code string) bool { return failed[code][f.Host] }) {
				failed[c.Code][f.Host] = true
				continue
			}
			sound = append(sound, f)
		}
		if len(sound) == 0 {
			continue
		}
		hits := c.Judge(spec, sound)
		for _, h := range hits {
			if c.problem(h.Signature).Severity == job.SeverityError {
				for _, host := range h.Hosts {
					failed[c.Code][host] = true
				}
			}
		}
		for _, h := range collapse(hits) {
			findings = append(findings, c.finding(h, len(facts)))
		}
	}
	return findings
}

// collapse joins hits that are the same problem on different hosts.
func collapse(hits []Hit) []Hit {
	var out []Hit
	for _, h := range hits {
		same := func(o Hit) bool { return o.says(h) }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Hosts = slices.Concat(out[i].Hosts, h.Hosts)
		} else {
			out = append(out, h)
		}
	}
	return out
}

// Errors reports whether any of the findings is an error. If so, the gang must not be started.
func Errors(findings []job.Finding) bool {
	return slices.ContainsFunc(findings, func(f job.Finding) bool { return f.Severity == job.SeverityError })
}
