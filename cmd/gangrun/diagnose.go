package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gangrun/gangrun/internal/controller"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/logset"
	"github.com/gangrun/gangrun/internal/rulefile"
	"github.com/gangrun/gangrun/internal/runlogs"
	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/diagnose"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

func diagnoseCommand() *cli.Command {
	return &cli.Command{
		Name:      "diagnose",
		Usage:     "find why a job failed from its logs",
		ArgsUsage: "[OPTIONS] LOG|DIRECTORY|RUN...",
		Description: "The logs are those of one job, of gangrun's ranks or of any other launcher: one log of all ranks,\n" +
			"or one a rank, and the launcher's and the kernel's beside them; - is standard input, RUN an earlier run.\n" +
			"Dumps of PyTorch's flight recorder in a directory are read, too.\n" +
			"They may be compressed by gzip, bzip2 or zstd, or be text in UTF-16.\n" +
			"The exit code is 0 if a cause was found, 1 if none was and the job looks successful, and 2 if it looks failed.",
		Flags: []cli.Flag{formatFlag(),
			&cli.StringFlag{Name: "rules", Usage: "find causes by the rules in `FILE`, too; they count more than gangrun's own"},
			&cli.StringFlag{Name: "check-rules", Usage: "only test the rules in `FILE` by their samples"}},
		Action: func(c *cli.Context) error {
			asJSON, err := asJSON(c)
			if err != nil {
				return err
			}
			if file := c.String("check-rules"); file != "" {
				return checkRules(c.App.Writer, file)
			}
			book, err := rulefile.Book(c.String("rules"))
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return failure.Usage("gangrun diagnose LOG... reads log files; - is standard input", "diagnose needs a log")
			}
			return diagnoseLogs(c.Context, c.App.Writer, book, c.Args().Slice(), asJSON)
		},
	}
}

func diagnoseLogs(ctx context.Context, w io.Writer, book *rule.Book, names []string, asJSON bool) error {
	logs, err := logset.Open(names, runLogs)
	var evidence job.Evidence
	if err == nil {
		evidence, err = logset.Read(ctx, logs, book, func(note string) { fmt.Fprintf(os.Stderr, "gangrun: note: %s\n", note) })
	}
	if err != nil {
		return &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("read the log: %w", err), Hint: hintFor(err)}
	}
	cause := diagnose.Logs(book, evidence)
	if asJSON {
		err = view.JSON(w, cause)
	} else {
		err = printCause(w, cause)
	}
	switch {
	case err != nil || cause.Category != "":
		return err
	case cause.Looks == job.LooksFailed:
		return failure.Exit(2)
	}
	return failure.Exit(1)
}

// checkRules tests the rules in a file with the samples that the file has for them.
func checkRules(w io.Writer, path string) error {
	f, err := rulefile.Read(path)
	if err != nil {
		return err
	}
	book := rules.Standard().With(f.Rules)
	err = f.Check(path, func(log string) string {
		e, err := logset.Text(log, book)
		if err != nil {
			return err.Error()
		}
		return diagnose.Logs(book, e).Signature
	})
	if err != nil {
		return &failure.Error{Code: failure.CodeUsage, Err: err, Hint: failure.Hint(err)}
	}
	_, err = fmt.Fprintf(w, "%s and their samples are in order\n", text.Count(len(f.Rules), "rule"))
	return err
}

// runLogs returns the directory with the logs of the last attempt of a run. id is the run's ID, or the beginning of the
// ID.
func runLogs(id string) (dir string, err error) {
	at, err := controller.HomeDir()
	if err != nil {
		return "", err
	}
	run, err := home.Find(at, id)
	if err != nil {
		return "", err
	}
	summary, err := run.Summary()
	if err != nil {
		return "", err
	}
	return runlogs.Query{}.Dir(summary), nil
}

// hintFor says what to do about a log that cannot be read.
func hintFor(err error) string {
	if hint := failure.Hint(err); hint != "" {
		return hint
	}
	return "give the path of a log file, or - for standard input; gangrun report RUN tells the cause of a run"
}

func printCause(w io.Writer, c job.Cause) error {
	for _, line := range c.Evidence {
		at := ""
		if line.Line > 0 {
			at = fmt.Sprintf("%s:%d: ", text.Printable(line.File), line.Line)
		} else if line.File != "" {
			at = text.Printable(line.File) + ": "
		}
		fmt.Fprintf(w, "%s%s\n", at, text.Printable(line.Text))
	}
	switch {
	case c.Category == "" && c.Looks == job.LooksFailed:
		_, err := fmt.Fprintf(w, "no cause was found, but the job looks failed: %s\nhint    %s\n", c.Text, c.Hint)
		return err
	case c.Category == "":
		_, err := fmt.Fprintf(w, "no cause was found: %s\n", c.Text)
		return err
	}
	fmt.Fprintf(w, "cause   %s (%s), confidence %.0f %%\n", c.Category, c.Signature, 100*c.Confidence)
	fmt.Fprintf(w, "        %s\n", c.Text)
	if len(c.Also) > 0 {
		fmt.Fprintf(w, "also    on ranks %s\n", text.Spans(c.Also, 10))
	}
	if c.Cascades > 0 {
		fmt.Fprintf(w, "then    %s failed as a consequence\n", text.Count(c.Cascades, "rank"))
	}
	if c.Hint != "" {
		fmt.Fprintf(w, "hint    %s\n", c.Hint)
	}
	_, err := fmt.Fprintf(w, "retry   %s\n", c.Retry)
	return err
}
