package topology

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

const simulationPath = "../docs/placement.md"

// conclusion is what told and toldOfWaiting hold against the figures.
const conclusion = `All of it is of half a year.

- **Islands.** On all three kinds of machines gangrun puts more gangs on one island than first-fit
  and best-fit do, in every seed, and more than best-fit with the same waiting in four seeds of five
  or in all. That last difference is small: 1 to 3 of 100 gangs. Most is gained by looking
  for islands at all, which this best-fit does with gangrun's eyes, and plain best-fit does not.
- **Hosts.** It keeps as many gangs on one host as best-fit does, within 2 of 100.
- **Rings.** Where machines differ its rings are the strongest of all, in every seed: it takes the
  better joined machines first.
- **Delay.** The mean delay is longer than each rival's in some seeds and shorter in
  others, on all machines: what is won is not paid with delay, and no delay is won.
- **Fragmentation.** Where machines differ this is the price: the ring counts before what stays
  free, so gangrun begins a well joined host where best-fit fills a lesser one. In every seed it
  leaves more GPUs free on partly busy hosts than either best-fit. First-fit leaves the most.
- **Waiting.** Delays are hours where there are any, so that two minutes a level do little. More
  patience buys closer places, and an hour a level costs delay.
`

// document writes the page.
func document(f figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How well gangs are placed
Written by the simulation in topology/simulation_*_test.go (`+"`make docs`"+`); do not edit.
Nothing here was measured on machines: it is simulated time, of gangs that exist only
as a number of GPUs and a run time.

## What is compared
256 GPUs: four racks of eight hosts with eight GPUs each, four hosts under a switch;
two racks of HGX-H100 (all GPUs joined by NVSwitch) and two of DGX-1V (a mesh in
which some pairs have two NVLinks, some one, some none). Gangs come one by one:

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

Before anything is measured, gangs come for %d days. The waiting, its levels and its
times are those of `+"`gangrun run`"+` (%s a level, then one wider), and who may start is for
all policies what the ticket rule of gangrun says: the oldest first, younger ones only on GPUs
that no older one has its ticket for. Nobody says how long it will run.

| policy | where it puts a gang | waits for a close place |
|---|---|---|
| first-fit | on the first host with room, else on the first free GPUs | no |
| best-fit | on the host with the fewest free GPUs that has room, else under the switch, in the rack, or anywhere, as Slurm with a topology; the host's first free GPUs | no |
| best-fit, waiting | the same, but while it waits for an island it takes one of a host that has one | like gangrun |
| gangrun | `+"`topology.PlaceGPUs`"+` | yes |

An island is as joined as so many GPUs of that host can be; what is on an island is
on a host, and what is on a host is in a rack. Every figure is the median of %d seeds, and
in brackets the least and the greatest.

## A day
The gangs that come within a day, followed until they have started. Delays are minutes.

%s
The same, seed by seed:

%s
On these five days gangrun puts more gangs on an island than first-fit and best-fit, each day,
and on stronger rings than any; but on no day more on an island than best-fit with the same
waiting, and on one its gangs wait longer than those of either best-fit. A day has some 180
gangs, of which every third has more than one GPU, and one that starts a little earlier
changes where all that follow go: half a year turns some of this round.

## Half a year
The same, measured for %d days, and on machines that are all alike too.

`, shares(), meanMinutes(0), meanMinutes(1), meanMinutes(2), meanMinutes(3), 100*fullLoad, block, warmUp/day, defaultWait, len(seeds), f.day, f.dayLess, longRun/day)
	for i, c := range clusters {
		fmt.Fprintf(&b, "### %s\n%s\n%s\n", c.name, f.long[i], f.longLess[i])
	}
	fmt.Fprintf(&b, `## What it shows
%s
## How long to wait
gangrun, half a year on the mixed machines, with other patience for each level:

%s
## A short run
One seed, two days on the mixed machines, empty at first, with gangs that in the long run
would ask for twice the GPUs that there are. It is here because every run of the tests works it out anew and holds
this page against it; the other tables are held by `+"`make soak`"+`.

%s`, conclusion, f.patience, f.slice)
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
	next() // the policies
	f := figures{day: next(), dayLess: next()}
	for range clusters {
		f.long, f.longLess = append(f.long, next()), append(f.longLess, next())
	}
	f.patience, f.slice = next(), next()
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
