package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/hostview"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/plan"
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
			from, err := hostSource(c)
			if err != nil {
				return err
			}
			list, err := hostlist.Look(c.Context, from)
			if err != nil {
				return err
			}
			list.Notes = append(list.Notes, g.Missing(list)...)
			list.Print(c.App.ErrWriter)
			choice, err := g.Place(list.Hosts)
			if asJSON {
				return errors.Join(err, hostview.PlanJSON(c.App.Writer, choice, err))
			}
			if err != nil {
				return err
			}
			return hostview.Plan{Gang: g, Hosts: list.Hosts, Choice: choice}.Text(c.App.Writer)
		},
	}
}

// localities returns the names of the localities, separated by commas.
func localities() string {
	var names []string
	for _, l := range job.Localities() {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}

// readGang returns the gang that the flags describe.
func readGang(c *cli.Context) (plan.Gang, error) {
	g := plan.Gang{Ranks: c.Int("ranks"), GPUs: -1, Locality: job.Locality(c.String("locality"))}
	if g.Ranks < 1 || g.Ranks > job.MaxRanks {
		return plan.Gang{}, failure.Usage("write a number of ranks, as in -n 8", "ranks is %d, but must be 1 to %d", g.Ranks, job.MaxRanks)
	}
	if c.IsSet("gpus-per-rank") {
		if g.GPUs = c.Int("gpus-per-rank"); g.GPUs < 0 || g.GPUs > inventory.MaxGPUs {
			return plan.Gang{}, failure.Usage("write how many GPUs of one host each rank gets; 0 is none", "gpus-per-rank is %d, but must be 0 to %d", g.GPUs, inventory.MaxGPUs)
		}
	}
	if c.IsSet("locality") && !slices.Contains(job.Localities(), g.Locality) {
		return plan.Gang{}, failure.Usage("the levels are: "+localities(), "locality %q is no level", g.Locality)
	}
	return g, nil
}
