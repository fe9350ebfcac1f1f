package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/controller/detached"
	"github.com/gangrun/gangrun/internal/follow"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/presence"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
)

func attachCommand() *cli.Command {
	return &cli.Command{
		Name:      "attach",
		Usage:     "follow a run to its end, or go on with one whose controller is gone",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run. It is shown as gangrun run\n" +
			"shows it, from now on, and the exit code is the run's. Ctrl-C leaves it alone. Where the run's\n" +
			"controller was killed, this process becomes its controller: ranks on other hosts that have not\n" +
			"ended go on, others are started again as after the loss of a host, and Ctrl-C ends the run.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "detach", Usage: "leave a run whose controller is gone to a process of its own, and return"},
			&cli.BoolFlag{Name: "force", Usage: "go on with a run whose controller was on another host, and is gone there"},
			formatFlag(),
		},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			return detachable(c, asJSON, func(asJSON bool, self *detached.Process) error {
				return attach(run, c.Bool("force"), asJSON, self)
			})
		}),
	}
}

// attach follows a run to its end. If the controller of the run is gone, attach takes the run over.
// self is this process if it is to control the run without a terminal; otherwise it is nil.
func attach(run home.Run, force, asJSON bool, self *detached.Process) error {
	begun := time.Now()
	for {
		s, err := run.Summary()
		if err != nil {
			return err
		}
		elsewhere := false // the controller may be alive, but cannot be seen from here
		if s.Controller != nil && !s.State.Final() {
			_, known := home.Alive(*s.Controller)
			elsewhere = !known
		}
		if s.State == job.StateLost || elsewhere && force {
			taking, stop := interrupt.Context()
			t, err := controller.Take(taking, run, force)
			stop()
			if errors.Is(err, home.ErrControlled) {
				continue // another process took the run over first
			}
			if err == nil {
				err = t.GoOn(asJSON, self)
			}
			return cutOff(run, err, asJSON)
		}
		if self != nil {
			return failure.Usage("gangrun attach "+run.ID+" follows it", "run %s is %s: there is nothing to take over", run.ID, s.State)
		}
		if elsewhere {
			fmt.Fprintf(os.Stderr, "gangrun: note: the controller is process %d on %s, which cannot be seen from here; %s\n", s.Controller.PID, s.Controller.Host, presence.IfGone(run))
		}
		out, errs := controller.Options{JSON: asJSON}.Streams()
		report, err := follow.Follow(run, out, errs)
		if errors.As(err, new(follow.GoneError)) && time.Since(begun) < dyingLimit {
			continue
		}
		if err != nil {
			return cutOff(run, err, asJSON)
		}
		if asJSON {
			if err := view.JSON(os.Stdout, report); err != nil {
				return err
			}
		}
		return controller.Exit(report)
	}
}

// dyingLimit is how long a controller that was killed may still seem to be alive. A user who
// attaches in that time wants to take the run over.
const dyingLimit = 5 * time.Second
