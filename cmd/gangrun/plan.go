package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/topology"
	"github.com/gangrun/gangrun/topology/inventory"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "show where a gang would go, and why, without starting it",
		Description: "Hosts come from --inventory, --hosts or --hostfile, else from the batch system's\n" +
			"allocation, else it is this machine. With an inventory a gang can be planned for\n" +
			"any machines from anywhere. The exit code is 69 where the gang does not fit.",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "ranks", Aliases: []string{"n"}, Usage: "plan for `N` ranks", Value: 1},
			&cli.IntFlag{Name: "gpus-per-rank", Usage: "give each rank `G` GPUs of one host; 0 is none, CPU slots only", DefaultText: "1 where hosts have GPUs, else 0"},
			&cli.StringFlag{Name: "locality", Usage: "place no wider than `LEVEL`: " + localities(), DefaultText: string(job.LocalityAny)},
			formatFlag(),
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("gangrun plan --inventory lab.yaml -n 8", "plan takes no arguments, got %q", c.Args().Slice())
			}
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			g, err := readGang(c)
			if err != nil {
				return err
			}
			list, err := readHosts(c)
			if err != nil {
				return err
			}
			list.Notes = append(list.Notes, g.missing(list)...)
			list.tell(c.App.ErrWriter)
			choice, err := g.place(list.Hosts)
			if asJSON {
				return errors.Join(err, printPlanJSON(c.App.Writer, choice, err))
			}
			if err != nil {
				return err
			}
			return planText{gang: g, hosts: list.Hosts, choice: choice}.print(c.App.Writer)
		},
	}
}

// localities lists the levels.
func localities() string {
	var names []string
	for _, l := range job.Localities() {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}

// gang is what is to be placed.
type gang struct {
	ranks    int
	gpus     int // of each rank; -1: 1 where hosts have GPUs, else 0
	locality job.Locality
}

func readGang(c *cli.Context) (gang, error) {
	g := gang{ranks: c.Int("ranks"), gpus: -1, locality: job.Locality(c.String("locality"))}
	if g.ranks < 1 || g.ranks > job.MaxRanks {
		return gang{}, failure.Usage("write a number of ranks, as in -n 8", "ranks is %d, but must be 1 to %d", g.ranks, job.MaxRanks)
	}
	if c.IsSet("gpus-per-rank") {
		if g.gpus = c.Int("gpus-per-rank"); g.gpus < 0 || g.gpus > inventory.MaxGPUs {
			return gang{}, failure.Usage("write how many GPUs of one host each rank gets; 0 is none", "gpus-per-rank is %d, but must be 0 to %d", g.gpus, inventory.MaxGPUs)
		}
	}
	if c.IsSet("locality") && !slices.Contains(job.Localities(), g.locality) {
		return gang{}, failure.Usage("the levels are: "+localities(), "locality %q is no level", g.locality)
	}
	return g, nil
}

// onGPUs is the number of GPUs of each rank on these hosts.
func (g gang) onGPUs(hosts []job.Host) int { return topology.GPUsPerRank(g.gpus, hosts) }

// missing says what the list leaves open, and what the plan takes for it.
func (g gang) missing(l hostList) []string {
	if l.own != nil {
		return nil
	}
	gpus := g.onGPUs(l.Hosts)
	var notes, blind, open []string
	for _, h := range l.Hosts {
		if len(h.Devices) == 0 {
			blind = append(blind, h.Name)
		}
		if h.Slots == 0 {
			open = append(open, h.Name)
		}
	}
	if l.Kind != inventory.Inventory && g.gpus != 0 {
		notes = append(notes, fmt.Sprintf("what GPUs %s cannot be seen from here; an inventory tells of them (--inventory)", have(blind)))
	} else if gpus > 0 && len(blind) > 0 {
		notes = append(notes, fmt.Sprintf("the list tells of no GPUs of %s: not used", few(blind)))
	}
	if gpus == 0 && len(open) > 0 {
		each := "it counts as one slot, and takes"
		if len(open) > 1 {
			each = "each counts as one slot, and takes"
		}
		notes = append(notes, fmt.Sprintf("slots of %s are not stated: %s more ranks where there is no other room", few(open), each))
	}
	return notes
}

// have is "h1 has" or "h1 and h2 have".
func have(names []string) string {
	if len(names) == 1 {
		return names[0] + " has"
	}
	return few(names) + " have"
}

// few names a few of many.
func few(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// place puts the gang on hosts. Its errors are the command's.
func (g gang) place(hosts []job.Host) (topology.Choice, error) {
	var choice topology.Choice
	var err error
	switch gpus := g.onGPUs(hosts); {
	case gpus > 0:
		choice, err = topology.PlaceGPUs(topology.Want{Ranks: g.ranks, GPUs: gpus, Locality: g.locality}, job.Inventory{Hosts: hosts}, job.Excluded{})
	case g.locality != "" && g.locality != job.LocalityAny:
		return choice, failure.Usage("leave --locality out, or give hosts with GPUs", "--locality %s is about GPUs, and the gang has none", g.locality)
	default:
		choice, err = placeOnSlots(g.ranks, hosts)
	}
	var no *topology.NoPlacement
	if errors.As(err, &no) {
		err = &failure.Error{Code: failure.CodeNoPlacement, Err: no, Hint: no.Hint}
	}
	return choice, err
}

// placeOnSlots places ranks without GPUs; a host without slots has one.
func placeOnSlots(ranks int, hosts []job.Host) (topology.Choice, error) {
	hosts = slices.Clone(hosts)
	soft, hard := 0, true
	for i := range hosts {
		hosts[i].Slots = max(1, hosts[i].Slots)
		soft += hosts[i].Slots
		hard = hard && hosts[i].Hard
	}
	placement, _, err := topology.Place(job.Spec{Ranks: ranks}, job.Inventory{Hosts: hosts}, job.Excluded{})
	if err != nil {
		return topology.Choice{}, err
	}
	racks, switches := map[string]bool{}, map[[2]string]bool{}
	for _, h := range placement.Hosts {
		racks[h.Rack], switches[[2]string{h.Rack, h.Switch}] = true, true
	}
	c := topology.Choice{
		Placement: placement, Level: job.LocalityAny,
		Cost: topology.Cost{Racks: len(racks), Switches: len(switches), Hosts: len(placement.Hosts), Bottleneck: topology.NoRing},
		Why:  []string{"ranks without GPUs are dealt evenly over the hosts, in the order of the list"},
	}
	switch {
	case len(placement.Hosts) == 1:
		c.Level = job.LocalityHost
	case len(racks) == 1:
		c.Level = job.LocalityRack
	}
	if !hard && ranks > soft {
		c.Why = append(c.Why, fmt.Sprintf("%s share %s", plural(ranks, "rank"), plural(soft, "slot")))
	}
	return c, nil
}
