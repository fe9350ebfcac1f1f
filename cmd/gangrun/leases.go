package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/topology/lease"
)

func leasesCommand() *cli.Command {
	return &cli.Command{
		Name:  "leases",
		Usage: "list which GPUs of this machine are held, by whom, and who waits",
		Description: "A lease is held by gangrun's agent on the machine, and free as soon as the ranks on the GPU have ended,\n" +
			"however they did. GANGRUN_LEASE_DIR names another directory for leases, the same for all users.\n" +
			"What the dead have written stays to be read until somebody else has the GPU, or --release clears it.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "release", Usage: "clear what holders that are dead have written; nobody waits for that"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("gangrun leases lists them all", "leases takes no arguments, got %q", c.Args().Slice())
			}
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			if _, err := lease.Open(os.Getenv(lease.Env), ""); err != nil {
				return controller.LeaseDirError(err)
			}
			list := lease.List
			if c.Bool("release") {
				list = lease.Release
			}
			hosts, err := list(c.Context, os.Getenv(lease.Env))
			if err != nil {
				return err
			}
			if hosts == nil {
				hosts = []lease.Listing{}
			}
			for i := range hosts {
				if hosts[i].Waiting == nil {
					hosts[i].Waiting = []lease.Waiter{}
				}
			}
			if asJSON {
				return view.JSON(c.App.Writer, hosts)
			}
			return printLeases(c.App.Writer, hosts, c.Bool("release"), time.Now())
		},
	}
}

func printLeases(w io.Writer, hosts []lease.Listing, released bool, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title := "HOST\tGPU\tSTATE\tRUN\tUSER\tPID\tFOR\tCOMMAND"
	rows := 0
	row := func(host, gpu, state string, o *lease.Owner, note string) {
		if rows++; rows == 1 {
			fmt.Fprintln(t, title)
		}
		if o == nil {
			fmt.Fprintf(t, "%s\t%s\t%s\t\t\t\t\t%s\n", host, gpu, state, text.Printable(note))
			return
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", host, gpu, state, text.Printable(o.Run), text.Printable(o.User), o.PID, view.Since(o.Since, now), text.Printable(cmp.Or(note, o.Command)))
	}
	for _, h := range hosts {
		host := text.Printable(cmp.Or(h.Host, thishost.Name()))
		for _, l := range h.Leases {
			if l.State == lease.StateFree && l.Warning == "" && !released {
				continue
			}
			state := string(l.State)
			if released {
				state = "cleared"
			}
			row(host, text.Printable(l.Device), state, l.Owner, l.Warning)
		}
		for _, wait := range h.Waiting {
			row(host, fmt.Sprintf("%d of %d", wait.Ticket.Count, len(wait.Ticket.Devices)), "waiting", &wait.Owner, "")
		}
		for _, warning := range h.Warnings {
			row(host, "", "warning", nil, warning)
		}
	}
	if rows == 0 {
		_, err := fmt.Fprintln(w, "no GPU of this machine is held, and nobody waits for one")
		return err
	}
	return t.Flush()
}
