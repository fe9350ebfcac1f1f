package topology

import (
	"fmt"
	"math"
	"slices"
)

// conclusion is what told and toldOfWaiting hold against the figures.
const conclusion = `Better locality at no more delay than the best rival is **not shown in full**: over half a year
locality is better, and delay neither better nor worse where machines are alike, but a little longer in
most seeds on the mixed ones; a day is too short to tell gangrun from the best rival, and on the days of
these seeds it is not ahead of it.

- **Islands, half a year.** Beside first-fit, best-fit and best-fit that waits, gangrun puts more gangs
  on one island in every seed on all three clusters. Beside the ideal rival it does so in every seed on
  DGX-1V and on the mixed machines, and in four of five on HGX-H100, by a median of 0.5 to 3.5 of 100 gangs.
- **Islands, a day.** Beside first-fit more in every seed; on DGX-1V and on the mixed machines more than
  with best-fit, waiting or not, in every seed, too. On HGX-H100, where every host is an island, more
  than best-fit that waits in four, but more than best-fit that does not in at most one. Beside the ideal
  rival it has more in two seeds of five where machines are alike, and **in one on the mixed machines**.
  That is chance for the most part: see [what a day can tell](#what-a-day-can-tell).
- **Delay.** Longer than each rival's in some seeds of the half year and shorter in others, on all
  clusters, and in no comparison no longer in all five; **on the mixed machines it is longer in four of
  five**, beside every rival. The median difference is below 1.5 minutes, of some 25, in either
  direction: no delay is won, and little is paid. On a day the
  median difference is 0.1 minutes at most; it counts as longer all the same, if one gang waits two minutes
  for a close place on a cluster where hardly any waits.
- **Hosts.** As many gangs on one host as with either best-fit, within 2 of 100: what is won is won
  by knowing links.
- **Rings and fragmentation, mixed machines.** The ring counts before what stays free, so that
  gangrun begins a well joined host where best-fit fills a lesser one. In every seed of the half year its
  rings are the strongest, and it leaves more GPUs free on partly busy hosts than any best-fit.
- **Waiting.** Delays are hours where there are any, so that two minutes a level do little. More
  patience buys closer places, and an hour a level costs delay.
`

// told fails where the figures of the clusters are not what the conclusion says.
func told(runs []compared) error {
	for k, c := range runs {
		for i := range ruleOwn {
			if err := toldOf(k, i, c); err != nil {
				return fmt.Errorf("%s beside %s: %w", clusters[k].name, policies[i].name, err)
			}
		}
	}
	return nil
}

// toldOf is told of one cluster and one rival.
func toldOf(cluster, rival int, c compared) error {
	day, long := c.outcomes[aDay], c.outcomes[halfYear]
	n := len(seeds)
	median := func(all [][]outcome, name string) float64 {
		values, _ := less(all, rival, name)
		slices.Sort(values)
		return quantile(values, 0.5)
	}
	islands, want := held(long, rival, rowIsland), n
	if rival == ruleLent && clusters[cluster].name == "HGX-H100" {
		want = n - 1
	}
	if m := median(long, rowIsland); islands != want || rival == ruleLent && (m < 0.5 || m > 3.5) {
		return fmt.Errorf("more gangs are on islands in %d seeds of half a year, by %.1f", islands, m)
	}
	if delays := held(long, rival, rowDelay); delays == 0 || delays == n || cluster == mixed && delays != 1 {
		return fmt.Errorf("the delay is no longer in %d seeds of half a year", delays)
	}
	if m := median(long, rowDelay); math.Abs(m) >= 1.5 {
		return fmt.Errorf("the delay differs by %.1f minutes", m)
	}
	least, most := n, n
	switch {
	case rival == ruleLent && cluster == mixed:
		least, most = 1, 1
	case rival == ruleLent:
		least, most = 2, 2
	case clusters[cluster].name == "HGX-H100" && rival == ruleBest:
		least, most = 0, 1
	case clusters[cluster].name == "HGX-H100" && rival == ruleBlind:
		least, most = n-1, n-1
	}
	if islands = held(day, rival, rowIsland); islands < least || islands > most {
		return fmt.Errorf("more gangs are on islands in %d seeds of a day", islands)
	}
	if m := median(day, rowDelay); math.Abs(m) >= 0.15 {
		return fmt.Errorf("the delay of a day differs by %.2f minutes", m)
	}
	if m := median(long, rowHost); rival != ruleFirst && math.Abs(m) > 2 {
		return fmt.Errorf("%.1f %% more gangs are on hosts", m)
	}
	if rings := held(long, rival, rowLinks); cluster == mixed && rings < n {
		return fmt.Errorf("rings are stronger in %d seeds", rings)
	}
	if partly := held(long, rival, rowPartly); cluster == mixed && rival != ruleFirst && partly > 0 || rival == ruleFirst && partly < n {
		return fmt.Errorf("no more GPUs are free on partly busy hosts in %d seeds", partly)
	}
	if h := c.chance(rival); rival == ruleLent && (h.mean < 0 || h.sigma < 2*h.mean || h.all > 10 || h.more < h.fewer) {
		return fmt.Errorf("a day says %+v", h)
	}
	return nil
}

// toldOfWaiting fails where the figures of patiences, means of islands and of
// delays, are not what the conclusion says.
func toldOfWaiting(islands, delays []float64) error {
	if !slices.IsSorted(islands) || delays[len(delays)-1] <= delays[1] {
		return fmt.Errorf("with more patience %.1f %% of gangs are on islands, and wait for %.1f minutes", islands, delays)
	}
	return nil
}
