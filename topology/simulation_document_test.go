package topology

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

const simulationPath = "../docs/placement.md"

// document returns the page.
func document(f figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How well gangs are placed
Written by the simulation in topology/simulation_*_test.go (`+"`make docs`"+`); do not edit.
Nothing here was measured on machines. Time is simulated, and a gang is only a number of
GPUs and a run time.

## Result
The table compares gangrun with each of the [other policies](#what-is-compared) in %d seeds. A seed gives one
sequence of gangs. For each other policy, the table counts

- the seeds in which gangrun put more gangs of two GPUs or more on one island than that policy;
- the seeds in which the mean queueing delay of gangrun was not longer;
- the seeds in which both hold.

The first three columns are for the gangs that arrive on the first day, the last three for the gangs
that arrive within the half year that begins with that day.

%s
%s
## What is compared
There are 256 GPUs: four racks of eight hosts with eight GPUs each; a switch connects four
hosts. Three clusters are simulated. In the first, all hosts are DGX-1V: pairs of GPUs have
two, one or no NVLinks, as was usual at the time of the Philly study. In the second, all are
HGX-H100, whose GPUs are all connected by NVSwitch. The third has two racks of each.

- **Number of GPUs** of a gang: %s. Gavel (Narayanan et
  al., OSDI 2020) draws the jobs of Microsoft's Philly cluster in the same way, but with
  5 %% for eight GPUs and no larger gangs: the shares of 16 and 32 GPUs are our choice.
- **Run time**: from Figure 2 of the Philly study (Jeon et al., USENIX ATC 2019), read
  from the plot in its authors' notebook. The mean is %.0f minutes for gangs of one GPU,
  %.0f for 2-4, %.0f for 8, and %.0f for more; the longest run takes a week. Distance between
  GPUs does not change the run time here, unlike on real machines.
- **Arrival**: at the same rate at all hours (our choice), such that gangs ask for %.0f %% of
  the GPUs in the long run. In every %d gangs, each size and run time has its exact share.
  Otherwise a few large gangs would decide the result of a seed.

Gangs arrive for %d days before the measurement begins. As with `+"`gangrun run`"+`, a gang that waits
accepts the next wider level after %s. All policies use gangrun's rule for the order: the
oldest gang starts first; a gang that came later may only use GPUs that are not reserved for an older
gang. No policy knows how long a gang will run.

| policy | where it puts a gang | waits for |
|---|---|---|
| first-fit | on the first host with enough free GPUs; if there is none, on the first free GPUs of any hosts | nothing |
| best-fit | of the hosts with room for the gang, it takes the one with the fewest free GPUs, and there the first free GPUs. If no host has room, it takes GPUs under one switch, else in one rack, else anywhere. Slurm with a topology does this if its gres.conf has no Links: it then does not know how GPUs are linked | nothing |
| best-fit with waiting | as best-fit, but with gangrun's rule for waiting | a host, then a rack |
| ideal best-fit | as best-fit with waiting, but it knows islands: of the hosts with a free island for the gang, it takes the one with the fewest free GPUs. No known scheduler does this | an island, a host, then a rack |
| gangrun | `+"`topology.PlaceGPUs`"+` | an island, a host, then a rack |

On this page, a gang of n GPUs counts as on one island if it is on one host and no other n GPUs of
this host are better connected. This is the island as a level of locality of the [glossary](glossary.md): the
gang need not be connected by the best kind of link that the host has. A gang on one island also counts as on one host,
and a gang on one host also counts as in one rack. If all GPUs of a host are connected equally, the
whole host is an island. The ring of a gang is an order of its GPUs, chosen so that the slowest link between neighbours
is as fast as possible; an all-reduce is no faster than that link. Every figure
is the median of %d seeds, with the least and the greatest in brackets. Delays are in minutes.
Each gang is followed until it has started.

`, len(seeds), f.verdict, conclusion, shares(), meanMinutes(0), meanMinutes(1), meanMinutes(2), meanMinutes(3), 100*fullLoad, block, warmUp/day, defaultWait, len(seeds))
	for i, k := range clusters {
		fmt.Fprintf(&b, "## %s\n%s\nThe same, seed by seed:\n\n%s\n", k.name, f.clusters[i], f.less[i])
	}
	fmt.Fprintf(&b, `## What a day can tell
This table divides the half years into days. It shows on which share of them (%d seeds times %d
days) gangrun puts more gangs on an island than the other policy, and on which share it puts fewer there. The last two
columns compare the seeds. They show on which share of the %d days gangrun puts more gangs on an island than
the other policy in none of the seeds, and on which share it does so in all %d seeds.

A single day says little. It has about 180 gangs, of which a third have more than one GPU. If
one gang starts a little earlier, all later gangs get other places. The difference between
gangrun and ideal best-fit on one day therefore has a standard deviation of at least twice its
mean. Days on which gangrun puts more gangs on an island than ideal best-fit are more frequent than days
on which it puts fewer there. But on at most a tenth of the days it puts more gangs there in all seeds.
The days in the tables above are the first days of the half years; nobody has selected them.

%s
## How long to wait
gangrun, half a year on the mixed cluster, with different patience for each level:

%s
## A short run
One seed and two days on the mixed cluster, which is empty at first. Gangs arrive so fast that, in
the long run, they would need twice as many GPUs as the cluster has. In these two days, the cluster only
begins to fill. `+"`make test`"+` computes this table and compares it with this page;
`+"`make soak`"+` does the same for the other tables.

%s`, len(seeds), longRun/day, longRun/day, len(seeds), f.chances, f.patience, f.slice)
	return b.String()
}

// shares formats sizeShares.
func shares() string {
	var parts []string
	for _, s := range sizeShares {
		parts = append(parts, fmt.Sprintf("%d: %g %%", s.gpus, math.Round(1000*s.share)/10))
	}
	return strings.Join(parts, ", ")
}

// committed returns the tables of the present page.
func committed(page string) figures {
	var tables []string
	inside := false
	for line := range strings.Lines(page) {
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
			continue
		case !inside:
			tables = append(tables, "")
		}
		inside = true
		tables[len(tables)-1] += line
	}
	next := func() (t string) {
		if len(tables) > 0 {
			t, tables = tables[0], tables[1:]
		}
		return t
	}
	f := figures{verdict: next()}
	next() // skip the policies
	for range clusters {
		f.clusters, f.less = append(f.clusters, next()), append(f.less, next())
	}
	f.chances, f.patience, f.slice = next(), next(), next()
	return f
}

// TestDocumentPlacement compares the page with its text and the short run. With UPDATE=1, it writes the page.
// TestSoakDocumentPlacement compares the page with all runs.
func TestDocumentPlacement(t *testing.T) {
	if os.Getenv("UPDATE") == "1" {
		f, err := simulateAll()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(simulationPath, []byte(document(f)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(simulationPath)
	if err != nil {
		t.Fatal(err)
	}
	f := committed(string(page))
	if f.slice, err = shortCut(); err != nil {
		t.Fatal(err)
	}
	if want := document(f); string(page) != want {
		t.Errorf("%s is not what the simulation writes: run UPDATE=1 go test -run '^TestDocument' ./topology\n%s", simulationPath, difference(string(page), want))
	}
}

// difference returns the first line in which two texts differ.
func difference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(h), len(w))
}
