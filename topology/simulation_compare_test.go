package topology

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// seeds has the seeds for the document.
var seeds = []uint64{1, 2, 3, 4, 5}

// clusters has clusters of 256 GPUs each.
var clusters = []struct {
	name string
	make func() *fleet
}{
	{"DGX-1V", func() *fleet { return newFleet(4, 8, func(int) func(string) job.Host { return dgx1v }) }},
	{"HGX-H100", func() *fleet { return newFleet(4, 8, func(int) func(string) job.Host { return hgxH100 }) }},
	{"half HGX-H100, half DGX-1V", func() *fleet {
		return newFleet(4, 8, func(rack int) func(string) job.Host { return []func(string) job.Host{hgxH100, dgx1v}[rack%2] })
	}},
}

const mixed = 2 // index in clusters

const (
	defaultWait = 2 * time.Minute // job.DefaultPatience
	fullLoad    = 0.9
	warmUp      = 28 * day
	longRun     = 180 * day
)

// patiences has the waiting times that are compared.
var patiences = []time.Duration{0, defaultWait, 10 * time.Minute, time.Hour}

// periods has the periods that are measured in every run. All begin with the same day.
var periods = []struct {
	name   string
	length int64
}{{"a day", day}, {"half a year", longRun}}

const (
	aDay = iota
	halfYear
)

// compared has the results of runs with the same arrivals: outcomes by period, policy and seed.
type compared struct {
	outcomes [][][]outcome
	// islands has rowIsland for the gangs of each day, by policy and seed.
	islands [][][]float64
}

// compare runs every policy with the same arrivals, for each seed.
func compare(tr trial, seeds []uint64) (compared, error) {
	c := compared{outcomes: make([][][]outcome, len(tr.measured)), islands: make([][][]float64, len(policies))}
	for i := range c.outcomes {
		c.outcomes[i] = make([][]outcome, len(policies))
	}
	for p := range policies {
		for _, tr.seed = range seeds {
			list, gangs, err := measure(tr, policies[p])
			if err != nil {
				return c, err
			}
			for i, o := range list {
				c.outcomes[i][p] = append(c.outcomes[i][p], o)
			}
			c.islands[p] = append(c.islands[p], daily(gangs, tr.warm, slices.Max(tr.measured)))
		}
	}
	return c, nil
}

// daily returns rowIsland for the gangs of each day, beginning at a time.
func daily(gangs []simulated, from, length int64) []float64 {
	days := make([][]simulated, (length+day-1)/day)
	for _, g := range gangs {
		days[(g.at-from)/day] = append(days[(g.at-from)/day], g)
	}
	list := make([]float64, len(days))
	for i, d := range days {
		list[i] = tally(d)[rowIsland]
	}
	return list
}

// moreIsBetter has the figures for which higher values are better. For all others, lower values are better.
var moreIsBetter = map[string]bool{rowIsland: true, rowHost: true, rowLinks: true}

// less returns, for each seed, by how much gangrun's figure differs from that of another policy. holds reports
// whether gangrun's figure is equal or better.
func less(all [][]outcome, policy int, name string) (values []float64, holds []bool) {
	for n, o := range all[ruleOwn] {
		d := o[name] - all[policy][n][name]
		values = append(values, d)
		holds = append(holds, moreIsBetter[name] && d > 0 || !moreIsBetter[name] && d <= 0)
	}
	return values, holds
}

// held returns the number of seeds in which gangrun is equal or better in all of the named figures.
func held(all [][]outcome, policy int, names ...string) int {
	count := 0
	for n := range all[ruleOwn] {
		if !slices.ContainsFunc(names, func(name string) bool {
			_, holds := less(all, policy, name)
			return !holds[n]
		}) {
			count++
		}
	}
	return count
}

// spread formats the median, the smallest and the largest of some values.
func spread(values []float64, digits int) string {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(values)
	least, most := fixed(values[0], digits), fixed(values[len(values)-1], digits)
	if least == most {
		return least
	}
	return fmt.Sprintf("%s (%s to %s)", fixed(quantile(values, 0.5), digits), least, most)
}

// fixed formats a number. It avoids -0.0.
func fixed(v float64, digits int) string {
	if s := fmt.Sprintf("%.*f", digits, v); strings.Trim(s, "-0.") != "" {
		return s
	}
	return fmt.Sprintf("%.*f", digits, 0.0)
}

// heading writes the heading of a table.
func heading(w io.Writer, columns ...string) {
	fmt.Fprintf(w, "| %s |\n|---%s|\n", strings.Join(columns, " | "), strings.Repeat("|---", len(columns)-1))
}

// table writes the figures of all policies side by side.
func table(w io.Writer, all [][]outcome, rows []row) {
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for i := range policies {
			if r.digits < 0 {
				fmt.Fprint(w, " |")
				continue
			}
			var values []float64
			for _, o := range all[i] {
				values = append(values, o[r.name])
			}
			fmt.Fprintf(w, " %s |", spread(values, r.digits))
		}
		fmt.Fprintln(w)
	}
}

// differences writes by how much gangrun's figures differ from those of the other policies, for each seed, and
// how often gangrun is equal or better.
func differences(w io.Writer, all [][]outcome, rows []string) {
	for _, name := range rows {
		words := "less or equal in"
		if moreIsBetter[name] {
			words = "more in"
		}
		fmt.Fprintf(w, "| %s |", name)
		for i := range ruleOwn {
			values, _ := less(all, i, name)
			fmt.Fprintf(w, " %s; %s %d of %d |", spread(values, 1), words, held(all, i, name), len(values))
		}
		fmt.Fprintln(w)
	}
}

// verdict writes how often gangrun is equal to or better than each other policy on a cluster.
func verdict(w io.Writer, cluster string, c compared) {
	for i := range ruleOwn {
		fmt.Fprintf(w, "| %s | %s |", cluster, policies[i].name)
		for p := range periods {
			all := c.outcomes[p]
			fmt.Fprintf(w, " %d | %d | %d |", held(all, i, rowIsland), held(all, i, rowDelay), held(all, i, rowIsland, rowDelay))
		}
		fmt.Fprintln(w)
	}
}

// chance says how much the result for islands depends on the day.
type chance struct {
	more, fewer float64 // % of days
	mean, sigma float64 // the mean and the standard deviation of the difference on a day
	none, all   float64 // % of days on which gangrun has more in no seed, and in all seeds
}

func (c compared) chance(policy int) chance {
	var k chance
	var list []float64
	days := c.islands[ruleOwn][0]
	for d := range days {
		more := 0
		for seed := range c.islands[ruleOwn] {
			v := c.islands[ruleOwn][seed][d] - c.islands[policy][seed][d]
			if math.IsNaN(v) { // no gang of two GPUs or more came
				continue
			}
			list = append(list, v)
			if v > 0 {
				more, k.more = more+1, k.more+1
			} else if v < 0 {
				k.fewer++
			}
		}
		if share := 100 / float64(len(days)); more == 0 {
			k.none += share
		} else if more == len(c.islands[ruleOwn]) {
			k.all += share
		}
	}
	n := float64(len(list))
	k.more, k.fewer, k.mean = 100*k.more/n, 100*k.fewer/n, mean(list)
	for _, v := range list {
		k.sigma += (v - k.mean) * (v - k.mean) / (n - 1)
	}
	k.sigma = math.Sqrt(k.sigma)
	return k
}
