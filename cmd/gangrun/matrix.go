package main

import (
	"github.com/urfave/cli/v2"
)

// verboseFlag has the matrix of the hosts shown whatever is in it.
func verboseFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show all that the preflight has found on each host, also where no host is odd"}
}
