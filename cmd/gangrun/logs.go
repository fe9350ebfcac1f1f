package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
)

func logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what the ranks of a run have printed",
		ArgsUsage: "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run. Lines have their rank before\n" +
			"them, unless there is only one; standard error goes to standard error. With -o json the log files\n" +
			"are listed, with their sizes.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the run has ended"},
			&cli.StringFlag{Name: "rank", Aliases: []string{"r"}, Usage: "only this `RANK`"},
			&cli.StringFlag{Name: "attempt", Usage: "this `ATTEMPT`, not the latest: a number, or trial; trial1, trial2 ... are the steps of the trial"},
			&cli.StringFlag{Name: "stream", Usage: "only out or err, as `STREAM`"},
			formatFlag(),
		},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			want, err := logWish(c)
			if err != nil {
				return err
			}
			if asJSON {
				want.openMPI = want.rank < 0 && want.stream == ""
				s, err := run.Summary()
				if err != nil {
					return err
				}
				files, err := want.files(s)
				if err != nil {
					return err
				}
				return view.JSON(c.App.Writer, files)
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return want.show(ctx, run, c.Bool("follow"))
		}),
	}
}

// wish is which logs to show.
type wish struct {
	rank    int    // -1 is every rank
	attempt string // "" is the latest
	stream  string // "" is both
	openMPI bool   // the files of what mpirun and Open MPI's daemons say, too
}

func logWish(c *cli.Context) (wish, error) {
	w := wish{rank: -1, attempt: c.String("attempt"), stream: c.String("stream")}
	if r := c.String("rank"); r != "" {
		n, err := strconv.Atoi(r)
		if err != nil || n < 0 {
			return w, failure.Usage("write --rank 3, or leave it out for every rank", "%q is no rank", r)
		}
		w.rank = n
	}
	if number, _ := strings.CutPrefix(w.attempt, "trial"); number != "" {
		if n, err := strconv.Atoi(number); err != nil || n < 1 {
			return w, failure.Usage("write --attempt 2, --attempt trial or --attempt trial2", "%q is no attempt", w.attempt)
		}
	}
	if !slices.Contains([]string{"", "out", "err"}, w.stream) {
		return w, failure.Usage("write --stream out or --stream err", "%q is no stream", w.stream)
	}
	return w, nil
}

// logFile is one log file of a run.
type logFile struct {
	Attempt string `json:"attempt"`
	Rank    int    `json:"rank"`   // -1 of what is no rank's
	Stream  string `json:"stream"` // out, err, or who speaks in what is no rank's: mpirun, daemon
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
}

var (
	logForm     = regexp.MustCompile(`^rank-([0-9]{4,})\.(out|err)$`)
	openMPIForm = regexp.MustCompile(`^(mpirun|daemon)(?:-.*)?\.log$`)
)

// where returns the attempt of a run that is wanted, and the directory of its logs.
func (w wish) where(s home.Summary) (attempt, dir string) {
	attempt = w.attempt
	if attempt == "" {
		attempt = "trial"
		if s.Attempts > 0 {
			attempt = strconv.Itoa(s.Attempts)
		}
	}
	if strings.HasPrefix(attempt, "trial") {
		return trialStep(filepath.Join(s.Dir, "attempts", "trial"), attempt)
	}
	return attempt, filepath.Join(s.Dir, "attempts", attempt)
}

// files lists the log files of a run that there are now.
func (w wish) files(s home.Summary) ([]logFile, error) {
	attempt, dir := w.where(s)
	run := home.Run{ID: s.Run, Dir: s.Dir}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) && w.attempt == "" {
		return []logFile{}, nil // nothing has been started yet
	}
	if err != nil {
		return nil, &failure.Error{Code: failure.CodeUsage, Err: fmt.Errorf("run %s has no logs of attempt %s: %w", run.ID, attempt, err), Hint: "gangrun status " + run.ID + " tells its attempts"}
	}
	files := []logFile{}
	for _, e := range entries {
		f := logFile{Attempt: attempt, Path: filepath.Join(dir, e.Name())}
		if m := logForm.FindStringSubmatch(e.Name()); m != nil {
			f.Stream = m[2]
			f.Rank, _ = strconv.Atoi(m[1]) // digits, by its form
		} else if m := openMPIForm.FindStringSubmatch(e.Name()); m != nil && w.openMPI {
			f.Rank, f.Stream = -1, m[1]
		} else {
			continue
		}
		if w.rank >= 0 && f.Rank != w.rank || w.stream != "" && f.Stream != w.stream {
			continue
		}
		if info, err := e.Info(); err == nil {
			f.Bytes = info.Size()
		}
		files = append(files, f)
	}
	return files, nil
}

// trialStep returns the name of a step of the trial, and where its log files are:
// those of the first are in dir, those of others in directories of their own there.
// "trial" is the latest step.
func trialStep(dir, step string) (name, logs string) {
	if step == "trial" {
		step = "trial1"
		for n := 2; ; n++ {
			next := "trial" + strconv.Itoa(n)
			if _, err := os.Stat(filepath.Join(dir, next)); err != nil {
				break
			}
			step = next
		}
	}
	if step == "trial1" {
		return "trial", dir
	}
	return step, filepath.Join(dir, step)
}
