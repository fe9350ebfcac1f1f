package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/hostlist"
)

// hostFlags returns the flags that say which hosts there are.
func hostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "inventory", Usage: "take hosts and their GPUs from `FILE`, a YAML inventory"},
		&cli.StringFlag{Name: "hosts", Usage: "take the hosts `H1,H2:4`, with slots behind a colon"},
		&cli.StringFlag{Name: "hostfile", Usage: "take the hosts of `FILE`, a hostfile of Open MPI or MPICH, or a plain list"},
	}
}

// hostSource returns the list of hosts that the flags name.
func hostSource(c *cli.Context) (hostlist.Source, error) {
	return hostlist.FromFlags(func(name string) (string, bool) { return c.String(name), c.IsSet(name) })
}
