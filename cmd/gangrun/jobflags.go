package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/jobfile"
	"github.com/gangrun/gangrun/internal/namedfile"
)

// jobArgs is the usage text for the arguments of a command about a job.
const jobArgs = "[OPTIONS] [JOB.yaml] [-- COMMAND ...]"

// jobCommands are the commands whose arguments describe a job.
var jobCommands = []string{"run", "preflight", "submit"}

// jobFlags returns the flags that describe a job. They come from the table that also describes the job file.
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
		case jobfile.Env, jobfile.Mounts:
			flags = append(flags, &cli.GenericFlag{Name: f.Flagged(), Aliases: aliases, Value: &repeated{}, Usage: f.Usage + "; as `" + f.Value + "`"})
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

// onJob returns the action of a command about one job.
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
		return verdictOf(spec, do(c, spec, asJSON))
	}
}

// jobSpec puts the job together from the job file, the flags and the command.
func jobSpec(c *cli.Context) (job.Spec, error) {
	file, command, err := jobWords(c)
	if err != nil {
		return job.Spec{}, err
	}
	if _, err := hostSource(c); err != nil {
		return job.Spec{}, err
	}
	options := jobfile.NewOptions(os.LookupEnv)
	fail := func(err error) (job.Spec, error) {
		return job.Spec{}, &failure.Error{Code: failure.CodeUsage, Err: err,
			Fallback: "gangrun " + c.Command.Name + " --help lists the flags; keys of a job file have the same names"}
	}
	var errs []error // the user gets all errors at once
	if file != "" {
		f, err := jobfile.Load(file, namedfile.Read)
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
		case jobfile.Env, jobfile.Mounts:
			values = *c.Generic(f.Flagged()).(*repeated)
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
	cwd, err := workingDir(options.Relative(), "--workdir")
	if err != nil {
		return job.Spec{}, err
	}
	spec, err := options.Finish(cwd)
	if err != nil {
		return fail(err)
	}
	return spec, nil
}

// isJobFile reports whether a word is the name of a job file.
func isJobFile(word string) bool {
	ext := filepath.Ext(word)
	return ext == ".yaml" || ext == ".yml"
}

// jobWords returns the job file and the command that the arguments name. If the user has written "--" before the
// command, the arguments contain the "--", too.
func jobWords(c *cli.Context) (file string, command []string, err error) {
	words := c.Args().Slice()
	switch {
	case len(words) == 0:
		return "", nil, nil
	case words[0] == "--":
		return "", words[1:], nil
	case !isJobFile(words[0]):
		return "", words, nil
	}
	file, command = words[0], words[1:]
	if len(command) == 0 {
		return file, nil, nil
	}
	if command[0] != "--" {
		return "", nil, failure.Usage("write the command after --: gangrun "+c.Command.Name+" "+file+" -- COMMAND",
			"%q stands behind the job file %q", command[0], file)
	}
	return file, command[1:], nil
}
