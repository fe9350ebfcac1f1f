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

// seeds are those of the document.
var seeds = []uint64{1, 2, 3, 4, 5}

// clusters are 256 GPUs each.
var clusters = []struct {
	name string
	make func() *fleet
}{
	{"half HGX-H100, half DGX-1V", func() *fleet {
		return newFleet(4, 8, func(rack int) func(string) job.Host { return []func(string) job.Host{hgxH100, dgx1v}[rack%2] })
	}},
	{"HGX-H100", func() *fleet { return newFleet(4, 8, func(int) func(string) job.Host { return hgxH100 }) }},
	{"DGX-1V", func() *fleet { return newFleet(4, 8, func(int) func(string) job.Host { return dgx1v }) }},
}

// compare runs every policy on the same arrivals, seed by seed.
func compare(tr trial, seeds []uint64) ([][]outcome, error) {
	all := make([][]outcome, len(policies))
	for i, p := range policies {
		for _, tr.seed = range seeds {
			o, err := measure(tr, p)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], o)
		}
	}
	return all, nil
}

// spread writes the median of some values, and the least and the greatest.
func spread(values []float64, digits int) string {
	values = slices.DeleteFunc(values, math.IsNaN)
	slices.Sort(values)
	if len(values) == 1 || values[0] == values[len(values)-1] {
		return fmt.Sprintf("%.*f", digits, values[0])
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, quantile(values, 0.5), digits, values[0], digits, values[len(values)-1])
}

// table writes figures of all policies side by side.
func table(w io.Writer, all [][]outcome, rows []row) {
	names := []string{""}
	for _, p := range policies {
		names = append(names, p.name)
	}
	fmt.Fprintf(w, "| %s |\n|---%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(policies)))
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

// differences writes by how much gangrun's figures differ from the others', seed
// by seed, and how often they are better.
func differences(w io.Writer, all [][]outcome, rows []string) {
	own := len(policies) - 1
	fmt.Fprint(w, "| gangrun less |")
	for _, p := range policies[:own] {
		fmt.Fprintf(w, " %s |", p.name)
	}
	fmt.Fprintf(w, "\n|---%s|\n", strings.Repeat("|---", own))
	for _, name := range rows {
		fmt.Fprintf(w, "| %s |", name)
		for i := range own {
			values, better := less(all, i, name)
			fmt.Fprintf(w, " %s; better in %d of %d |", spread(values, 1), better, len(values))
		}
		fmt.Fprintln(w)
	}
}

// moreIsBetter are the figures of differences that should be great; of the others
// little is good.
var moreIsBetter = map[string]bool{
	rowIsland: true, rowHost: true, rowLinks: true,
}

// figures are the tables of the document, in its order.
type figures struct {
	slice, day, dayLess string
	long                []string // for each cluster
	longLess            []string
	patience            string
}

// patiences are those that are compared, and the settings of all trials.
var patiences = []time.Duration{0, 2 * time.Minute, 10 * time.Minute, time.Hour}

const (
	defaultWait = 2 * time.Minute // job.DefaultPatience
	fullLoad    = 0.9
	warmUp      = 28 * day
	longRun     = 180 * day
)

// shortCut is the part of the document that every run of the tests works out: two days
// on machines that are empty at first, with more gangs than they can serve.
func shortCut() (string, error) {
	all, err := compare(trial{clusters[0].make(), 0, 2, 0, 2 * day, defaultWait}, seeds[:1])
	if err != nil {
		return "", err
	}
	var b strings.Builder
	table(&b, all, rows)
	return b.String(), nil
}

// simulateAll works out all figures; it takes a minute or two. It fails where the
// words of the document are not what the figures say.
func simulateAll() (figures, error) {
	var f figures
	var err error
	if f.slice, err = shortCut(); err != nil {
		return f, err
	}
	brief := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.digits < 0 })
	compared := []string{rowIsland, rowHost, rowLinks, rowDelay, rowP90, rowPartly}
	var b strings.Builder
	flush := func() string {
		defer b.Reset()
		return b.String()
	}
	tr := trial{clusters[0].make(), 0, fullLoad, warmUp, day, defaultWait}
	all, err := compare(tr, seeds)
	if err != nil {
		return f, err
	}
	table(&b, all, rows)
	f.day = flush()
	differences(&b, all, compared)
	f.dayLess = flush()
	if err := toldOfDay(all); err != nil {
		return f, err
	}
	tr.measured = longRun
	for i, c := range clusters {
		tr.fleet = c.make()
		if all, err = compare(tr, seeds); err != nil {
			return f, err
		}
		table(&b, all, brief)
		f.long = append(f.long, flush())
		differences(&b, all, compared)
		f.longLess = append(f.longLess, flush())
		if err := told(i, all); err != nil {
			return f, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	tr.fleet = clusters[0].make()
	fmt.Fprintf(&b, "| | %s | %s | %s | %s |\n|---|---|---|---|---|\n", rowIsland, rowHost, rowDelay, rowBusy)
	var islands, delays []float64
	for _, tr.patience = range patiences {
		columns := map[string][]float64{}
		for _, tr.seed = range seeds {
			o, err := measure(tr, policies[len(policies)-1])
			if err != nil {
				return f, err
			}
			for name, v := range o {
				columns[name] = append(columns[name], v)
			}
		}
		fmt.Fprintf(&b, "| %s |", job.Duration(tr.patience))
		for _, name := range []string{rowIsland, rowHost, rowDelay, rowBusy} {
			fmt.Fprintf(&b, " %s |", spread(columns[name], 1))
		}
		fmt.Fprintln(&b)
		islands, delays = append(islands, quantile(columns[rowIsland], 0.5)), append(delays, quantile(columns[rowDelay], 0.5))
	}
	f.patience = flush()
	return f, toldOfWaiting(islands, delays)
}

// less is by how much gangrun's figure differs from another policy's, seed by seed,
// and in how many seeds it is better.
func less(all [][]outcome, policy int, name string) (values []float64, better int) {
	for n, o := range all[len(policies)-1] {
		d := o[name] - all[policy][n][name]
		values = append(values, d)
		if moreIsBetter[name] && d > 0 || !moreIsBetter[name] && d < 0 {
			better++
		}
	}
	return values, better
}

// toldOfDay is told for a day.
func toldOfDay(all [][]outcome) error {
	for i, p := range policies[:len(policies)-1] {
		_, islands := less(all, i, rowIsland)
		_, rings := less(all, i, rowLinks)
		delays, _ := less(all, i, rowDelay)
		if rings < len(seeds) || !p.waits && islands < len(seeds) || p.waits && islands > 0 {
			return fmt.Errorf("in a day, beside %s islands are better in %d seeds, rings in %d", p.name, islands, rings)
		}
		if i > 0 && slices.Max(delays) < 1 {
			return fmt.Errorf("in a day, gangs wait for %.1f minutes more than with %s", delays, p.name)
		}
	}
	return nil
}

// told fails where a cluster's figures are not what the conclusion says.
func told(cluster int, all [][]outcome) error {
	for i, p := range policies[:len(policies)-1] {
		_, islands := less(all, i, rowIsland)
		if want := len(seeds); islands < want && !p.waits || islands < want-1 {
			return fmt.Errorf("more gangs are on islands than with %s in %d seeds only", p.name, islands)
		}
		if _, delays := less(all, i, rowDelay); delays == 0 || delays == len(seeds) {
			return fmt.Errorf("the delay is shorter than with %s in %d seeds", p.name, delays)
		}
		_, rings := less(all, i, rowLinks)
		_, partly := less(all, i, rowPartly)
		if cluster == 0 && (rings < len(seeds) || i > 0 && partly > 0) || i == 0 && partly < len(seeds) {
			return fmt.Errorf("beside %s rings are better in %d seeds, fragmentation in %d", p.name, rings, partly)
		}
		islandsLess, _ := less(all, i, rowIsland)
		hosts, _ := less(all, i, rowHost)
		slices.Sort(islandsLess)
		slices.Sort(hosts)
		if m := quantile(islandsLess, 0.5); p.waits && (m < 0.5 || m > 3) {
			return fmt.Errorf("%.1f %% more gangs are on islands than with %s", m, p.name)
		}
		if m := quantile(hosts, 0.5); i > 0 && math.Abs(m) > 2 {
			return fmt.Errorf("%.1f %% more gangs are on hosts than with %s", m, p.name)
		}
	}
	return nil
}

// toldOfWaiting is told for the patiences: medians of islands and of delays.
func toldOfWaiting(islands, delays []float64) error {
	if !slices.IsSorted(islands) || delays[len(delays)-1] <= delays[1] {
		return fmt.Errorf("with more patience %.1f %% of gangs are on islands, and wait for %.1f minutes", islands, delays)
	}
	return nil
}
