package topology

import (
	"fmt"
	"math"
	"slices"
)

// conclusion is the text that checkConclusion and checkPatience compare with the figures.
const conclusion = `gangrun was meant to have better locality than the best other policy, and delays that are not longer. That is
**only partly shown**. Over half a year, locality is better. Delay is neither better nor worse on DGX-1V, but a
little longer in most seeds on HGX-H100 and on the mixed cluster. A day is too short to
distinguish gangrun from ideal best-fit, and on the days of these seeds gangrun is not better.

- **Islands, half a year.** gangrun puts more gangs on one island than first-fit, best-fit and
  best-fit with waiting, in every seed on all three clusters. It also puts more on one island than
  ideal best-fit: in every seed on DGX-1V and on the mixed cluster, and in four of five seeds on HGX-H100.
  The median difference between gangrun and ideal best-fit is 0.5 to 3.5 of 100 gangs.
- **Islands, a day.** gangrun puts more gangs on one island than first-fit in every seed. On DGX-1V
  and on the mixed cluster it also puts more on one island than best-fit, with and without waiting, in every
  seed. On HGX-H100, where every host is an island, it puts more gangs on one island than best-fit with waiting in
  four seeds, but more than best-fit without waiting in only one seed. It puts more gangs on one island
  than ideal best-fit in two of five seeds on DGX-1V, in two of five on HGX-H100, and **in one of
  five on the mixed cluster**. On a day, the comparison with ideal best-fit is mostly chance: see
  [what a day can tell](#what-a-day-can-tell).
- **Delay.** Over half a year, on each cluster and compared with each of the other policies,
  gangrun's delay is longer in some seeds and shorter in others. **On the mixed cluster it is longer
  in four of five seeds**, whatever the other policy. The mean delay is about 25 minutes; the median
  difference is below 1.5 minutes in either direction. On a day the median difference is at most
  0.1 minutes. The table counts gangrun's delay as longer even if the only difference is one gang that
  waits two minutes for close GPUs.
- **Hosts.** Over half a year, gangrun puts about as many gangs on one host as each of the three
  best-fit policies: the median difference is at most 2 of 100 gangs. On a day it may be larger.
  So on the clusters whose hosts have several islands, the reason for gangrun's better locality over half a year is
  not that it uses fewer hosts, but that it knows which GPUs of a host are well connected.
- **Rings and fragmentation, mixed cluster.** For gangrun, a fast [ring](plan.md#what-is-compared) is more important than
  the value of the GPUs that stay free. So gangrun may put a gang on an empty, well-connected host
  where best-fit fills a slower host. In every seed of the half year gangrun's rings are the fastest,
  and it leaves more GPUs free on partly busy hosts than each of the three best-fit policies.
- **Waiting.** A gang that has to wait mostly waits for hours. Therefore, a patience of two minutes for
  each level changes little. More patience gives closer GPUs; an hour for each level makes delays longer.
`

// checkConclusion fails if the figures of the clusters contradict the conclusion.
func checkConclusion(runs []compared) error {
	for k, c := range runs {
		for i := range ruleOwn {
			if err := checkRival(k, i, c); err != nil {
				return fmt.Errorf("%s beside %s: %w", clusters[k].name, policies[i].name, err)
			}
		}
	}
	return nil
}

// checkRival is checkConclusion for one cluster and one other policy.
func checkRival(cluster, rival int, c compared) error {
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
	if delays := held(long, rival, rowDelay); delays == 0 || delays == n || cluster == mixed && delays != 1 ||
		clusters[cluster].name == "HGX-H100" && delays > n/2 {
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
		least, most = 1, 1
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

// checkPatience fails if the figures for the different waiting times contradict the conclusion. islands and
// delays are means.
func checkPatience(islands, delays []float64) error {
	if !slices.IsSorted(islands) || delays[len(delays)-1] <= delays[1] {
		return fmt.Errorf("with more patience %.1f %% of gangs are on islands, and wait for %.1f minutes", islands, delays)
	}
	return nil
}
