package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// skewLimit is from when on clocks that differ are told of. Below it programs that
// compare times of different hosts, such as make over NFS, seldom go wrong.
const skewLimit = time.Second

const clockHint = "fix time synchronisation (chronyc tracking, timedatectl): gangrun corrects the times that it tells itself, and nothing corrects those in the job's own logs and files"

var clockCheck = Check{
	Code: "clock",
	Asks: "Do the hosts' clocks agree, within a second?",
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
		odd, middle := oddClocks(facts)
		if n := tally(odd); n == 0 {
			if off(middle.Skew, middle.SkewWithin) && !slices.ContainsFunc(facts, func(f job.Facts) bool { return f.Skew == 0 }) {
				return []Hit{{Signature: "clock-own", Values: map[string]string{"skew": ahead(middle.Skew)}}}
			}
			return nil
		} else if 2*n >= len(facts) {
			var hosts, clocks []string
			for _, f := range facts {
				hosts = append(hosts, f.Host)
				if f.Host != facts[0].Host {
					clocks = append(clocks, f.Host+"'s is "+ahead(f.Skew-facts[0].Skew)+" "+facts[0].Host+"'s")
				}
			}
			return []Hit{{Signature: "clock-differs", Hosts: hosts, Values: map[string]string{"clocks": names(clocks)}}}
		}
		var hits []Hit
		for i, f := range facts {
			if odd[i] {
				hits = append(hits, Hit{Signature: "clock-odd", Hosts: []string{f.Host}, Values: map[string]string{"skew": ahead(f.Skew - middle.Skew)}})
			}
		}
		return hits
	},
}

// oddClocks says which hosts' clocks are off from the one in the middle, which it
// also returns.
func oddClocks(facts []job.Facts) (odd []bool, middle job.Facts) {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b job.Facts) int { return cmp.Compare(a.Skew, b.Skew) })
	middle = sorted[(len(sorted)-1)/2]
	odd = make([]bool, len(facts))
	for i, f := range facts {
		odd[i] = off(f.Skew-middle.Skew, f.SkewWithin+middle.SkewWithin)
	}
	return odd, middle
}

// off reports whether a difference of clocks that is known give or take within is
// one to tell of.
func off(skew, within time.Duration) bool { return skew.Abs()-within >= skewLimit }

// ahead says a difference of clocks, as in "1.3 s ahead of" or "120 s behind".
func ahead(skew time.Duration) string {
	word := " ahead of"
	if skew < 0 {
		word = " behind"
	}
	switch d := skew.Abs(); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds()) + word
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds()) + word
	case d < 10*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes()) + word
	default:
		return fmt.Sprintf("%.0f h", d.Hours()) + word
	}
}

// tally counts what is true.
func tally(list []bool) (n int) {
	for _, yes := range list {
		if yes {
			n++
		}
	}
	return n
}
