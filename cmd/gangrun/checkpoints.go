package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/checkpointview"
	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/interrupt"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
)

func checkpointsCommand() *cli.Command {
	return &cli.Command{
		Name:      "checkpoints",
		Usage:     "list and verify the checkpoints of a directory, and remove old ones",
		ArgsUsage: "[OPTIONS] [DIRECTORY|RUN]",
		Description: "RUN is an ID or the beginning of one, and stands for its checkpoint directory; last, or nothing, is\n" +
			"the newest run. An asterisk marks the checkpoint from which a new run with --resume would start.\n" +
			"The exit code is 0 if there is a good checkpoint, and 1 if there is none.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "look for NaN and Inf in the tensors, too"},
			&cli.StringFlag{Name: "prune", Usage: "remove the good checkpoints that no rule of `RULES` keeps: keep=3 keeps the newest 3, keep=3,every=1000 also those of each 1000th step"},
			&cli.BoolFlag{Name: "yes", Usage: "with --prune, do not ask"},
			&cli.BoolFlag{Name: "dry-run", Usage: "with --prune, only say what would be removed"},
			formatFlag(),
		},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			var keep *checkpoint.Keep
			switch {
			case c.IsSet("prune"):
				k, err := checkpoint.ParseKeep(c.String("prune"))
				if err != nil {
					return failure.Usage("write --prune keep=3, or --prune keep=3,every=1000", "--prune: %w", err)
				}
				keep = &k
			case c.Bool("yes") || c.Bool("dry-run"):
				return failure.Usage("write --prune keep=3, too", "--yes and --dry-run are for --prune")
			}
			dir, err := checkpointDir(c)
			if err != nil {
				return err
			}
			list, err := listCheckpoints(dir, c.Bool("deep"))
			if err != nil {
				return err
			}
			if keep != nil {
				err = prune(c, dir, list, *keep, asJSON)
			} else if asJSON {
				err = view.JSON(c.App.Writer, list)
			} else if len(list) == 0 {
				_, err = fmt.Fprintf(c.App.Writer, "there are no checkpoints in %q\n", dir)
			} else {
				err = checkpointview.Print(c.App.Writer, list, time.Now())
			}
			if err != nil || hasGood(list) {
				return err
			}
			return failure.Exit(1)
		},
	}
}

func hasGood(list []checkpoint.Listed) bool {
	for _, l := range list {
		if l.Verdict == checkpoint.Good {
			return true
		}
	}
	return false
}

// checkpointDir returns the directory that the argument names. The argument is the directory itself
// or a run.
func checkpointDir(c *cli.Context) (string, error) {
	if c.NArg() > 1 {
		return "", failure.Usage("write gangrun checkpoints DIRECTORY", "checkpoints is about one directory, got %q", c.Args().Slice())
	}
	arg := c.Args().First()
	if strings.ContainsRune(arg, os.PathSeparator) || arg == "." || arg == ".." {
		return arg, nil
	}
	if info, err := os.Stat(arg); arg != "" && err == nil && info.IsDir() {
		return arg, nil
	}
	at, err := controller.HomeDir()
	if err != nil {
		return "", err
	}
	run, err := home.Find(at, arg)
	if err != nil {
		return "", &failure.Error{Code: failure.CodeUsage, Err: err, Hint: "gangrun checkpoints ./DIRECTORY verifies a directory; gangrun ps lists the runs"}
	}
	_, events, err := record.Report(run)
	if err != nil {
		return "", ofRun(run, err)
	}
	spec := record.Spec(events)
	if spec == nil || spec.CheckpointDir == "" {
		return "", failure.Usage("gangrun checkpoints DIRECTORY verifies a directory", "run %s has no checkpoint directory", run.ID)
	}
	return spec.CheckpointDir, nil
}

// listCheckpoints verifies the checkpoints of a directory. If the user ends the command, it returns
// even if the file system does not answer. Nobody then waits for the goroutine that reads the
// checkpoints, because the process ends.
func listCheckpoints(dir string, deep bool) ([]checkpoint.Listed, error) {
	ctx, stop := interrupt.Context()
	defer stop()
	type result struct {
		list []checkpoint.Listed
		err  error
	}
	done := make(chan result, 1)
	go func() {
		list, err := checkpoint.List(ctx, dir, deep)
		done <- result{list, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() == nil {
			return nil, &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("cannot list the checkpoints: %w", r.err), Hint: "give a directory that can be read, or a run"}
		}
		if ctx.Err() == nil {
			return r.list, nil
		}
	case <-ctx.Done():
	}
	if left, ok := errors.AsType[interrupt.Signal](context.Cause(ctx)); ok {
		return nil, failure.Exit(128 + int(left.Number))
	}
	return nil, ctx.Err()
}

// prune removes the checkpoints that no rule in keep keeps. It asks the user first, unless --yes or --dry-run was
// given.
func prune(c *cli.Context, dir string, list []checkpoint.Listed, keep checkpoint.Keep, asJSON bool) error {
	out := keep.Superfluous(list)
	dry := c.Bool("dry-run")
	if !dry && !c.Bool("yes") && len(out) > 0 {
		if err := checkpointview.PrintPruned(c.App.ErrWriter, out, true); err != nil {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "Remove %s? [y/N] ", these(len(out)))
		if answer, err := bufio.NewReader(io.LimitReader(os.Stdin, 1<<10)).ReadString('\n'); !yes(answer) {
			if err != nil {
				fmt.Fprintln(c.App.ErrWriter)
			}
			return &failure.Error{Code: 1, Err: errors.New("nothing was removed"), Hint: "answer y, or write --yes"}
		}
	}
	removed := []checkpoint.Listed{}
	var failed error
	for _, l := range out {
		var err error
		if !dry {
			err = checkpoint.Remove(dir, l)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed = append(removed, l)
	}
	if !asJSON {
		return errors.Join(checkpointview.PrintPruned(c.App.Writer, removed, dry), failed)
	}
	p := checkpointview.Pruned{Checkpoints: list, Removed: []string{}, DryRun: dry}
	for _, l := range removed {
		p.Removed = append(p.Removed, l.Path)
	}
	return errors.Join(view.JSON(c.App.Writer, p), failed)
}

func these(n int) string {
	if n == 1 {
		return "this checkpoint"
	}
	return "these " + text.Count(n, "checkpoint")
}

// yes reports whether the user's answer to a question means yes.
func yes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
