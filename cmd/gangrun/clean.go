package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/leftover"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "remove the records and logs of runs that have ended, and processes that they have left behind",
		ArgsUsage: "[OPTIONS] [RUN ...]",
		Description: "Without RUNs, those are removed that ended longer ago than --older. Runs that are up are never\n" +
			"touched. What lost runs have left in the temporary directory is removed too. Processes of gangs\n" +
			"whose agents and watchdogs were all killed are ended on this machine, whatever run they are of.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "remove runs that ended longer than `TIME` ago", Value: "168h"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be removed"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			older, err := job.ParseDuration(c.String("older"))
			if err != nil {
				return failure.Usage("write --older 24h, or --older 0s for every run that has ended", "--older: %w", err)
			}
			dir, err := homeDir()
			if err != nil {
				return err
			}
			victims, err := victims(dir, c.Args().Slice(), time.Duration(older), time.Now())
			if err != nil {
				return err
			}
			dry := c.Bool("dry-run")
			killed, left := endLeftovers(c.Context, dry)
			return errors.Join(clean(c.App.Writer, victims, killed, dry, asJSON), stillThere(left))
		},
	}
}

// victims returns the runs to remove: those named, else those old enough.
func victims(dir string, names []string, older time.Duration, now time.Time) ([]home.Summary, error) {
	found := []home.Summary{}
	for _, name := range names {
		run, err := home.Find(dir, name)
		if err != nil {
			return nil, &failure.Error{Code: failure.CodeUsage, Err: err}
		}
		s, err := run.Summary()
		if err != nil {
			return nil, err
		}
		if !s.State.Final() {
			return nil, failure.Usage("gangrun stop "+run.ID+" ends it", "run %s is %s and cannot be removed", run.ID, s.State)
		}
		found = append(found, s)
	}
	if len(names) > 0 {
		return found, nil
	}
	all, err := home.List(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		end := s.Ended
		if end.IsZero() {
			end = s.Started // lost
		}
		if end.IsZero() {
			end = home.Run{ID: s.Run}.Created() // lost before it had told when it started
		}
		if s.State.Final() && !end.IsZero() && now.Sub(end) >= older {
			found = append(found, s)
		}
	}
	return found, nil
}

// removed is what clean prints of one run.
type removed struct {
	Run   string    `json:"run"`
	State job.State `json:"state"`
	Bytes int64     `json:"bytes"`
	// Processes are the PIDs of those that the run had left behind on this machine.
	Processes []int `json:"processes,omitempty"`
	// Left is the directory that the run's entry was a link to, which stays; empty where
	// it was no link.
	Left string `json:"left,omitempty"`
}

func clean(w io.Writer, victims []home.Summary, killed []leftover.Process, dry, asJSON bool) error {
	list, total := []removed{}, int64(0)
	var errs []error
	for _, v := range victims {
		r := removed{Run: v.Run, State: v.State, Bytes: treeBytes(v.Dir)}
		if info, err := os.Lstat(v.Dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			r.Left, _ = filepath.EvalSymlinks(v.Dir)
		}
		if !dry {
			tmp := filepath.Join(os.TempDir(), "gangrun-"+strconv.Itoa(os.Getuid()), v.Run)
			if err := errors.Join(os.RemoveAll(v.Dir), os.RemoveAll(tmp)); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		list, total = append(list, r), total+r.Bytes
	}
	runs := len(list)
	list = addProcesses(list, killed)
	if asJSON {
		return errors.Join(append(errs, view.JSON(w, list))...)
	}
	verb, end := "removed", "ended"
	if dry {
		verb, end = "would remove", "would end"
	}
	for _, r := range list[:runs] {
		fmt.Fprintf(w, "%s %s (%s, %.1f MB)\n", verb, r.Run, r.State, float64(r.Bytes)/1e6)
		if r.Left != "" {
			fmt.Fprintf(w, "%s is left: the run was a link to it\n", r.Left)
		}
	}
	for _, p := range killed {
		fmt.Fprintf(w, "%s process %d (%s), %s\n", end, p.PID, p.Name, leftBy(p))
	}
	fmt.Fprintf(w, "%s %d runs, %.1f MB\n", verb, runs, float64(total)/1e6)
	return errors.Join(errs...)
}

// treeBytes returns the size of all files below dir.
func treeBytes(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
