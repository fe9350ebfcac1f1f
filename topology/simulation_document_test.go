package topology

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

const simulationPath = "../docs/placement.md"

// document writes the page.
func document(f figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How well gangs are placed
Written by the simulation in topology/simulation_*_test.go (`+"`make docs`"+`); do not edit.
Nothing here was measured on machines: it is simulated time, of gangs that exist only
as a number of GPUs and a run time.

## Verdict
How many of %d seeds gangrun holds its own in, beside each rival: more gangs of two GPUs or more on one
island; a mean queueing delay that is no longer; both in one seed. First the gangs
that come within a day, then those of half a year that begins with that day.

%s
%s
## What is compared
256 GPUs: four racks of eight hosts with eight GPUs each, four hosts under a switch. The hosts are all
DGX-1V (a mesh in which some pairs have two NVLinks, some one, some none: a machine of the
time of the Philly study), all HGX-H100 (all GPUs joined by NVSwitch), or two racks of
each. Gangs come one by one:

- **how many GPUs** they ask for: %s. That is how jobs of
  Microsoft's Philly cluster are drawn by Gavel (Narayanan et al., OSDI 2020), but that 5 %% have eight
  GPUs there, and none more: those of 16 and 32 are our choice.
- **how long** they run: Figure 2 of the Philly study (Jeon et al., USENIX ATC 2019), read
  from the plot in its authors' notebook. A gang of one GPU runs for %.0f minutes in the
  mean, of 2-4 for %.0f, of 8 for %.0f, of more for %.0f; the longest run for a week. A wide place
  makes nobody slower here, though it does in life.
- **when** they come: at one rate at all hours (our choice), so that in the long run they ask
  for %.0f %% of the GPUs. Sizes and run times are drawn evenly (in every %d gangs each size as
  often as it should be), or a few big gangs would decide a seed.

Before anything is measured, gangs come for %d days. Who waits takes a wider level each
%s, as with `+"`gangrun run`"+`, and who may start is for all
policies what the ticket rule of gangrun says: the oldest first, younger ones only on GPUs
that no older one has its ticket for. Nobody says how long it will run.

| policy | where it puts a gang | waits for |
|---|---|---|
| first-fit | on the first host with room, else on the first free GPUs | nothing |
| best-fit | on the host with the fewest free GPUs that has room, else under the switch, in the rack, or anywhere, as Slurm with a topology; the host's first free GPUs | nothing |
| best-fit, waiting, blind to links | the same: Slurm, told of no Links between GPUs, with gangrun's waiting rule | a host, then a rack |
| best-fit, waiting, lent gangrun's eyes | the same, but while it waits for an island it takes one of the fullest host that has one: an ideal rival, no known scheduler | an island, a host, then a rack |
| gangrun | `+"`topology.PlaceGPUs`"+` | an island, a host, then a rack |

An island is as joined as so many GPUs of that host can be; what is on an island is
on a host, and what is on a host is in a rack. Where all GPUs of a host are joined alike, every host
is an island. Every figure is the median of %d seeds, and in brackets the least and the
greatest. Delays are minutes. Gangs are followed until they have started.

`, len(seeds), f.verdict, conclusion, shares(), meanMinutes(0), meanMinutes(1), meanMinutes(2), meanMinutes(3), 100*fullLoad, block, warmUp/day, defaultWait, len(seeds))
	for i, k := range clusters {
		fmt.Fprintf(&b, "## %s\n%s\nThe same, seed by seed:\n\n%s\n", k.name, f.clusters[i], f.less[i])
	}
	fmt.Fprintf(&b, `## What a day can tell
The half years cut into their days: on how many gangrun puts more gangs on an island, or fewer (of
%d seeds times %d days), and what a table of one day and %d seeds could have said, had that
day been another. A day has some 180 gangs, of which every third has more than one GPU, and one
that starts a little earlier changes where all that follow go: beside the ideal rival the difference of
a day is spread over twice its mean at least, and at most a tenth of the days have more in every seed, though
more days have more than have fewer. The days above begin the half years; they were not chosen.

%s
## How long to wait
gangrun, half a year on the mixed machines, with other patience for each level:

%s
## A short run
One seed, two days on the mixed machines, empty at first, with gangs that in the long run
would ask for twice the GPUs that there are. It is here because every run of the tests works it out anew and holds
this page against it; the other tables are held by `+"`make soak`"+`.

%s`, len(seeds), longRun/day, len(seeds), f.chances, f.patience, f.slice)
	return b.String()
}

// shares writes sizeShares.
func shares() string {
	var parts []string
	for _, s := range sizeShares {
		parts = append(parts, fmt.Sprintf("%d: %g %%", s.gpus, math.Round(1000*s.share)/10))
	}
	return strings.Join(parts, ", ")
}

// committed returns the tables of the page as it is.
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
	next() // the policies
	for range clusters {
		f.clusters, f.less = append(f.clusters, next()), append(f.less, next())
	}
	f.chances, f.patience, f.slice = next(), next(), next()
	return f
}

// TestDocumentPlacement holds the page against its words and the short run, and
// writes it with UPDATE=1. TestSoakDocumentPlacement holds it against all runs.
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

// difference is the first line in which two texts differ.
func difference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(h), len(w))
}
