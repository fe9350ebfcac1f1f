package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gangrun/gangrun/internal/packedlog"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
)

func diagnoseCommand() *cli.Command {
	return &cli.Command{
		Name:      "diagnose",
		Usage:     "find why a job failed from its logs",
		ArgsUsage: "[OPTIONS] LOG...",
		Description: "The logs may be those of gangrun's ranks, or of any other launcher; - is standard input.\n" +
			"They may be compressed by gzip or bzip2, or be text in UTF-16.\n" +
			"The exit code is 0 when a cause was found and 1 when none was.",
		Flags: []cli.Flag{formatFlag()},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return failure.Usage("gangrun diagnose LOG... reads log files; - is standard input", "diagnose needs a log")
			}
			return diagnoseLogs(c.App.Writer, c.Args().Slice(), asJSON)
		},
	}
}

func diagnoseLogs(w io.Writer, names []string, asJSON bool) error {
	evidence := job.Evidence{}
	for _, name := range names {
		lines, err := readLog(name)
		if err != nil {
			return &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("read the log: %w", err), Hint: hintFor(err)}
		}
		evidence.Lines = append(evidence.Lines, lines...)
	}
	cause := diagnose.Diagnose(evidence)
	var err error
	if asJSON {
		err = view.JSON(w, cause)
	} else {
		err = printCause(w, cause)
	}
	if err == nil && cause.Category == "" {
		return failure.Exit(1)
	}
	return err
}

// hintFor says what to do about a log that cannot be read.
func hintFor(err error) string {
	if hint := failure.Hint(err); hint != "" {
		return hint
	}
	return "give the path of a log file, or - for standard input; gangrun report RUN tells the cause of a run"
}

func readLog(name string) (lines []job.Line, err error) {
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	text, err := packedlog.Open(name, file, func(note string) { fmt.Fprintf(os.Stderr, "gangrun: note: %s\n", note) })
	if err != nil {
		return nil, err
	}
	return diagnose.ReadLog(name, text)
}

func printCause(w io.Writer, c job.Cause) error {
	for _, line := range c.Evidence {
		fmt.Fprintf(w, "%s:%d: %s\n", line.File, line.Line, line.Text)
	}
	if c.Category == "" {
		_, err := fmt.Fprintf(w, "no cause was found: %s\n", c.Text)
		return err
	}
	fmt.Fprintf(w, "cause   %s (%s), confidence %.0f %%\n", c.Category, c.Signature, 100*c.Confidence)
	fmt.Fprintf(w, "        %s\n", c.Text)
	if c.Hint != "" {
		fmt.Fprintf(w, "hint    %s\n", c.Hint)
	}
	_, err := fmt.Fprintf(w, "retry   %s\n", c.Retry)
	return err
}
