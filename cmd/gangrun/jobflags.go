package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
)

// jobArgs is how a job is given on the command line.
const jobArgs = "[OPTIONS] [JOB.yaml] [-- COMMAND ...]"

// jobFlags are the flags that say what the job is, from the one table that also
// describes the job file.
func jobFlags() []cli.Flag {
	var flags []cli.Flag
	for _, f := range jobfile.Fields() {
		if !f.Flag {
			continue
		}
		var aliases []string
		if f.Short != "" {
			aliases = []string{f.Short}
		}
		switch f.Kind {
		case jobfile.Switch:
			flags = append(flags, &cli.BoolFlag{Name: f.Flagged(), Aliases: aliases, Usage: f.Usage})
		case jobfile.Env:
			flags = append(flags, &cli.StringSliceFlag{Name: f.Flagged(), Aliases: aliases, Usage: f.Usage + "; as `" + f.Value + "`"})
		default:
			usage := f.Usage
			if len(f.Choices) > 0 && f.Kind == jobfile.Choice {
				usage += " (" + strings.Join(f.Choices, ", ") + ")"
			}
			flags = append(flags, &cli.StringFlag{Name: f.Flagged(), Aliases: aliases, Usage: usage + "; `" + f.Value + "`", DefaultText: f.Default})
		}
	}
	return flags
}

// onJob is the action of a command about one job.
func onJob(do func(c *cli.Context, spec job.Spec, asJSON bool) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		spec, err := jobSpec(c)
		if err != nil {
			return err
		}
		asJSON, err := asJSON(c)
		if err != nil {
			return err
		}
		return do(c, spec, asJSON)
	}
}

// jobSpec puts the job together from the job file, the flags and the command.
func jobSpec(c *cli.Context) (job.Spec, error) {
	file, command, err := jobWords(c)
	if err != nil {
		return job.Spec{}, err
	}
	if err := namedHosts(c); err != nil {
		return job.Spec{}, err
	}
	options := jobfile.NewOptions(os.LookupEnv)
	fail := func(err error) (job.Spec, error) {
		return job.Spec{}, &failure{code: exitUsage, err: err,
			otherwise: "gangrun " + c.Command.Name + " --help lists the flags; keys of a job file have the same names"}
	}
	var errs []error // all of them are told at once
	if file != "" {
		f, err := jobfile.Load(file)
		if err == nil {
			options.Apply(f)
		}
		errs = append(errs, err)
	}
	for _, f := range jobfile.Fields() {
		if !f.Flag || !c.IsSet(f.Flagged()) {
			continue
		}
		values := []string{c.String(f.Flagged())}
		switch f.Kind {
		case jobfile.Switch:
			values = []string{strconv.FormatBool(c.Bool(f.Flagged()))}
		case jobfile.Env:
			values = c.StringSlice(f.Flagged())
		}
		for _, v := range values {
			errs = append(errs, options.Set(f.Flagged(), v))
		}
	}
	if len(command) > 0 {
		errs = append(errs, options.SetCommand(command))
	}
	if err := errors.Join(errs...); err != nil {
		return fail(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return job.Spec{}, err
	}
	spec, err := options.Finish(cwd)
	if err != nil {
		return fail(err)
	}
	return spec, nil
}

// jobWords tells the job file and the command apart. The flag parser takes a
// leading "--" away, so it is looked for in the words as they were typed.
func jobWords(c *cli.Context) (file string, command []string, err error) {
	words := c.Args().Slice()
	if len(words) == 0 {
		return "", nil, nil
	}
	if at := len(os.Args) - len(words) - 1; at >= 0 && os.Args[at] == "--" {
		return "", words, nil
	}
	if ext := filepath.Ext(words[0]); ext != ".yaml" && ext != ".yml" {
		return "", words, nil
	}
	file, command = words[0], words[1:]
	if len(command) == 0 {
		return file, nil, nil
	}
	if command[0] != "--" {
		return "", nil, usage("flags stand before the job file, a command after --: gangrun run -n 4 "+file+" -- COMMAND",
			"%q stands behind the job file %q", command[0], file)
	}
	return file, command[1:], nil
}
