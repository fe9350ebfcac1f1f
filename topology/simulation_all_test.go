package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// figures has the tables of the document in order.
type figures struct {
	verdict  string
	clusters []string // the figures of each cluster
	less     []string // the differences of each cluster
	chances  string
	patience string
	slice    string
}

// shortCut returns the table that every run of the tests computes: two days on machines that are empty at
// first, with more gangs than they can run.
func shortCut() (string, error) {
	c, err := compare(trial{clusters[mixed].make(), 0, 2, 0, []int64{2 * day}, defaultWait}, seeds[:1])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	heading(&b, names("")...)
	table(&b, c.outcomes[0], rows)
	return b.String(), nil
}

// names returns a column named own, and one column for each policy.
func names(own string) []string {
	list := []string{own}
	for _, p := range policies {
		list = append(list, p.name)
	}
	return list
}

// simulateAll computes all figures, which takes minutes. It fails if the text of the document differs from the
// figures.
func simulateAll() (figures, error) {
	var f figures
	var err error
	if f.slice, err = shortCut(); err != nil {
		return f, err
	}
	tr := trial{load: fullLoad, warm: warmUp, patience: defaultWait}
	for _, p := range periods {
		tr.measured = append(tr.measured, p.length)
	}
	brief := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.digits < 0 })
	var runs []compared
	var verdicts, chances strings.Builder
	heading(&verdicts, "machines", "other policy", "day: more on an island", "day: delay not longer", "day: both", "half year: more on an island", "half year: delay not longer", "half year: both")
	heading(&chances, "machines", "other policy", "days with more, %", "with fewer, %", "difference on a day, mean", "its standard deviation", "more in no seed, % of days", "more in every seed, % of days")
	for _, k := range clusters {
		tr.fleet = k.make()
		c, err := compare(tr, seeds)
		if err != nil {
			return f, err
		}
		runs = append(runs, c)
		verdict(&verdicts, k.name, c)
		for i := range ruleOwn {
			h := c.chance(i)
			fmt.Fprintf(&chances, "| %s | %s | %.0f | %.0f | %s | %.1f | %.0f | %.0f |\n", k.name, policies[i].name, h.more, h.fewer, fixed(h.mean, 1), h.sigma, h.none, h.all)
		}
		var b, d strings.Builder
		heading(&b, names("")...)
		heading(&d, names("gangrun minus")[:1+ruleOwn]...)
		for p, period := range periods {
			fmt.Fprintf(&b, "| **%s** |%s\n", period.name, strings.Repeat(" |", len(policies)))
			table(&b, c.outcomes[p], brief)
			fmt.Fprintf(&d, "| **%s** |%s\n", period.name, strings.Repeat(" |", ruleOwn))
			differences(&d, c.outcomes[p], []string{rowIsland, rowHost, rowLinks, rowDelay, rowP90, rowPartly})
		}
		f.clusters, f.less = append(f.clusters, b.String()), append(f.less, d.String())
	}
	f.verdict, f.chances = verdicts.String(), chances.String()
	if f.patience, err = simulatePatience(tr); err != nil {
		return f, err
	}
	return f, checkConclusion(runs)
}

// simulatePatience lets gangrun wait for different times on the mixed cluster.
func simulatePatience(tr trial) (string, error) {
	var b strings.Builder
	columns := []string{rowIsland, rowHost, rowDelay, rowBusy}
	heading(&b, append([]string{"patience"}, columns...)...)
	tr.fleet = clusters[mixed].make()
	var islands, delays []float64
	for _, tr.patience = range patiences {
		values := map[string][]float64{}
		for _, tr.seed = range seeds {
			list, _, err := measure(tr, policies[ruleOwn])
			if err != nil {
				return "", err
			}
			for name, v := range list[halfYear] {
				values[name] = append(values[name], v)
			}
		}
		fmt.Fprintf(&b, "| %s |", job.Duration(tr.patience))
		for _, name := range columns {
			fmt.Fprintf(&b, " %s |", spread(values[name], 1))
		}
		fmt.Fprintln(&b)
		islands, delays = append(islands, mean(values[rowIsland])), append(delays, mean(values[rowDelay]))
	}
	return b.String(), checkPatience(islands, delays)
}
