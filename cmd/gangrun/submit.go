package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/remote/shell"
	"github.com/gangrun/gangrun/internal/submit"
	"github.com/gangrun/gangrun/internal/view"
)

func submitCommand() *cli.Command {
	return &cli.Command{
		Name:      "submit",
		Usage:     "put a job into Slurm's queue: first its trial, then its gang",
		ArgsUsage: jobArgs,
		Description: "The trial is a job of one task, or of as many as trial.ranks says, with their GPUs. It has five\n" +
			"minutes, or as long as two trials of trial.time take.\n" +
			"The gang's job starts only if the trial has passed, and does not repeat it.\n\n" +
			"   gangrun submit --slurm \"-p gpu --gres=gpu:8 -N4 -t 2:00:00\" job.yaml",
		Flags: append(jobFlags(),
			&cli.StringFlag{Name: "slurm", Usage: "flags of sbatch for the gang's job; those about partition, account, QOS, constraint, reservation, dependencies, CPUs and memory of a task are for the trial, too; `FLAGS`"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be submitted"},
			formatFlag()),
		Action: onJob(func(c *cli.Context, spec job.Spec, asJSON bool) error {
			flags, err := jobfile.Split(c.String("slurm"))
			if err != nil {
				return failure.Usage(`write the flags as a shell would take them: --slurm "-p gpu -N4"`, "--slurm %v", err)
			}
			s := controller.Submission{Spec: spec, Flags: flags}
			if c.Bool("dry-run") {
				plan, err := s.Plan()
				if err != nil {
					return err
				}
				if asJSON {
					if plan.Trial != nil {
						plan.Gang = plan.Gang.After("TRIAL")
					}
					return view.JSON(c.App.Writer, plan)
				}
				return printPlan(c.App.Writer, plan)
			}
			ids, err := s.Submit(c.Context)
			if err != nil {
				return err
			}
			if asJSON {
				return view.JSON(c.App.Writer, ids)
			}
			if ids.Trial != "" {
				fmt.Fprintf(c.App.Writer, "trial: job %s\n", ids.Trial)
			}
			fmt.Fprintf(c.App.Writer, "gang: job %s\n", ids.Gang)
			return nil
		}),
	}
}

// printPlan prints the commands and the scripts of a plan.
func printPlan(w io.Writer, p submit.Plan) error {
	gang := p.Gang
	if p.Trial != nil {
		printBatch(w, *p.Trial)
		gang = gang.After("TRIAL")
	}
	printBatch(w, gang)
	return nil
}

func printBatch(w io.Writer, b submit.Batch) {
	words := []string{"sbatch", "--parsable"}
	for _, a := range b.Args {
		words = append(words, shell.Quote(a))
	}
	fmt.Fprintf(w, "%s <<'END'\n%sEND\n", strings.Join(words, " "), b.Script)
}
