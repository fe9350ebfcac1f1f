package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller/detached"
	"github.com/gangrun/gangrun/internal/view"
)

func detachFlag() cli.Flag {
	return &cli.BoolFlag{Name: "detach", Usage: "leave the run to a process of its own: print its ID and return"}
}

// detachable calls do. Without --detach, it calls do in this process, with nil for self. With --detach, it starts
// another process, which has no terminal. That process calls do, with itself for self.
func detachable(c *cli.Context, asJSON bool, do func(asJSON bool, self *detached.Process) error) error {
	if !c.Bool("detach") {
		return do(asJSON, nil)
	}
	self, err := detached.Self()
	if err != nil {
		return err
	}
	if self != nil {
		return self.RestoreStderr(do(false, self))
	}
	run, err := detached.Start(os.Args)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "gangrun: run %[1]s goes on by itself: gangrun attach %[1]s follows it, gangrun stop %[1]s ends it\n", run.Run)
	if asJSON {
		return view.JSON(c.App.Writer, run)
	}
	_, err = fmt.Fprintln(c.App.Writer, run.Run)
	return err
}
