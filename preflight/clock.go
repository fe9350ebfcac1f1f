package preflight

import (
	"slices"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/preflight/compare"
)

const clockHint = "fix time synchronisation (chronyc tracking, timedatectl): gangrun corrects its own times, but not those in the job's logs and files"

var clockCheck = Check{
	Code:      "clock",
	Asks:      "Do the hosts' clocks agree, within a second?",
	DependsOn: []string{"image"},
	Problems: []Problem{
		{"clock-odd", job.SeverityWarning, "",
			"the clock of {hosts} is {skew} those of the other hosts", clockHint},
		{"clock-differs", job.SeverityWarning, "",
			"the clocks of {hosts} do not agree: {clocks}", clockHint},
		{"clock-own", job.SeverityWarning, "",
			"the clocks of all hosts agree, and are {skew} that of the machine that gangrun runs on", clockHint},
	},
	Judge: func(_ job.Spec, facts []job.Facts) []Hit {
		if len(facts) < 2 {
			return nil
		}
		odd, middle := compare.OddClocks(facts)
		if n := compare.Count(odd); n == 0 {
			if compare.Off(middle.Skew, middle.SkewWithin) && !slices.ContainsFunc(facts, func(f job.Facts) bool { return f.Skew == 0 }) {
				return []Hit{{Signature: "clock-own", Values: map[string]string{"skew": compare.Ahead(middle.Skew)}}}
			}
			return nil
		} else if 2*n >= len(facts) {
			var hosts, clocks []string
			for _, f := range facts {
				hosts = append(hosts, f.Host)
				if f.Host != facts[0].Host {
					clocks = append(clocks, f.Host+"'s is "+compare.Ahead(f.Skew-facts[0].Skew)+" "+facts[0].Host+"'s")
				}
			}
			return []Hit{{Signature: "clock-differs", Hosts: hosts, Values: map[string]string{"clocks": names(clocks)}}}
		}
		var hits []Hit
		for i, f := range facts {
			if odd[i] {
				hits = append(hits, Hit{Signature: "clock-odd", Hosts: []string{f.Host}, Values: map[string]string{"skew": compare.Ahead(f.Skew - middle.Skew)}})
			}
		}
		return hits
	},
}
