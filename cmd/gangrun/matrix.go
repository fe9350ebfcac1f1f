package main

import (
	"github.com/urfave/cli/v2"
)

// verboseFlag makes the command show the matrix of the hosts even if the hosts do not differ.
func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show all that the preflight has found on each host, also where no host is odd"}
}
