package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/atomicfile"
	"github.com/gangrun/gangrun/internal/browser"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/record"
	"github.com/gangrun/gangrun/internal/runpage"
	"github.com/gangrun/gangrun/internal/view"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "tell what became of a run: attempts, causes, verdicts, times",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run. A run that has ended has its page in\n" +
			"its directory, as report.html.",
		Flags: []cli.Flag{formatFlag(),
			&cli.StringFlag{Name: "html", Usage: "write the run's page to `FILE`, or to standard output if that is -"},
			&cli.BoolFlag{Name: "open", Usage: "show the run's page in the browser ($BROWSER, or that of the desktop)"},
		},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			if file, open := c.String("html"), c.Bool("open"); c.IsSet("html") || open {
				return reportPage(c, run, file, open, asJSON)
			}
			report, _, err := record.Report(run)
			if err != nil {
				return err
			}
			if asJSON {
				return view.JSON(c.App.Writer, report)
			}
			if err := view.PrintSummary(c.App.Writer, report); err != nil {
				return err
			}
			noteController(c, run, report)
			return nil
		}),
	}
}

// pageLimit limits the time for reading the logs of a run for its page.
const pageLimit = 2 * time.Minute

// reportPage writes the page of a run, and shows the page in the browser if open is true. If file is empty, the page is
// the file in the run's directory. reportPage makes that file if it is missing or if the run has not ended.
func reportPage(c *cli.Context, run home.Run, file string, open, asJSON bool) error {
	switch {
	case asJSON:
		return failure.Usage("leave one of them out", "--html and --open have no JSON")
	case c.IsSet("html") && file == "":
		return failure.Usage("write --html FILE, or --html - for standard output", "--html names nothing")
	case file == "-" && open:
		return failure.Usage("leave one of them out", "--open cannot show what goes to standard output")
	case file == "":
		file = run.PagePath()
		if s, err := run.Summary(); err == nil && s.State.Final() {
			if _, err := os.Stat(file); err == nil {
				return show(c, file)
			}
		}
	}
	page, err := makePage(c.Context, run)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := c.App.Writer.Write(page)
		return err
	}
	if err := atomicfile.WriteFile(file, page, 0o600); err != nil {
		return &failure.Error{Code: failure.CodeUsage, Err: err, Hint: "gangrun report --html FILE " + run.ID + " writes it to another place"}
	}
	if open {
		return show(c, file)
	}
	return nil
}

// makePage returns the page of a run in its present state.
func makePage(ctx context.Context, run home.Run) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	report, _, err := record.Report(run)
	if err != nil {
		return nil, err
	}
	life, err := record.Vitals(run)
	if err != nil {
		return nil, err
	}
	page, err := runpage.Read(ctx, ctx, run)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Write(&b, runpage.Now{Time: time.Now(), State: report.State, Vitals: life})
	return b.Bytes(), err
}

// show opens a file in the browser. If that is not possible, show prints the path of the file.
func show(c *cli.Context, file string) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	command := browser.Command(path, runtime.GOOS, os.Getenv, exec.LookPath)
	if command == nil {
		fmt.Fprintln(c.App.Writer, path)
		fmt.Fprintln(c.App.ErrWriter, "gangrun: hint: there is no display here: copy the file to where a browser is, or set BROWSER to a browser's name")
		return nil
	}
	cmd := exec.CommandContext(c.Context, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, io.Discard, c.App.ErrWriter
	if term := os.Stdout; c.App.Writer == io.Writer(term) {
		cmd.Stdout = term // for a browser that runs in the terminal
	}
	if err := cmd.Run(); err != nil {
		return &failure.Error{Code: failure.CodeInternal, Err: errors.Join(fmt.Errorf("%s could not show %s", command[0], path), err), Hint: "open that file in a browser"}
	}
	return nil
}
