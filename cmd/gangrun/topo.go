package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/hostlist"
	"github.com/gangrun/gangrun/internal/hostview"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/suggest"
	"github.com/gangrun/gangrun/internal/text"
)

// topoFormats has the function that prints each format of topo.
var topoFormats = map[string]func(io.Writer, hostlist.List) error{
	"text": hostview.Text, "json": hostview.JSON, "dot": hostview.Dot, "svg": hostview.SVG,
}

func topoCommand() *cli.Command {
	return &cli.Command{
		Name:  "topo",
		Usage: "show GPUs, what connects them, and who uses them",
		Description: "One host is shown as a matrix of its GPUs and NICs, several by racks and switches.\n" +
			"Hosts come from --inventory, --hosts or --hostfile, else from the batch system's\n" +
			"allocation, else it is this machine.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "o", Usage: "print as `FORMAT`: text, json, dot (for graphviz) or svg", Value: "text"},
			&cli.StringFlag{Name: "host", Usage: "show `HOST` of the list alone"},
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("gangrun topo --inventory lab.yaml --host NAME shows one host of a list", "topo takes no arguments, got %q", c.Args().Slice())
			}
			show, ok := topoFormats[c.String("o")]
			if !ok {
				return failure.Usage("write -o text, -o json, -o dot or -o svg", "-o %q is no format", c.String("o"))
			}
			from, err := hostSource(c)
			if err != nil {
				return err
			}
			list, err := hostlist.Look(c.Context, from)
			if err != nil {
				return err
			}
			if name := c.String("host"); c.IsSet("host") {
				if list.Hosts, err = oneHost(list.Hosts, name); err != nil {
					return err
				}
			}
			if c.String("o") == "text" {
				list.PrintNotes(c.App.ErrWriter) // the text has the findings already
			} else {
				list.Print(c.App.ErrWriter)
			}
			return show(c.App.Writer, list)
		},
	}
}

// oneHost returns the host with that name.
func oneHost(hosts []job.Host, name string) ([]job.Host, error) {
	var names []string
	for i, h := range hosts {
		if h.Name == name {
			return hosts[i : i+1], nil
		}
		names = append(names, h.Name)
	}
	hint := "its hosts are: " + text.Some(names, 6)
	if near := suggest.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return nil, failure.Usage(hint, "the list has no host %q", name)
}
