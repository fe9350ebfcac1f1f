package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
)

// formatFlag chooses how a command prints.
func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Usage: "print as `FORMAT`: text or json", Value: "text"}
}

// asJSON reports whether the user asked for JSON.
func asJSON(c *cli.Context) (bool, error) {
	switch f := c.String("o"); f {
	case "text":
		return false, nil
	case "json":
		return true, nil
	default:
		return false, failure.Usage("write -o text or -o json", "-o %q is no format", f)
	}
}
