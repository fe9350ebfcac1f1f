package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// helpFlag asks for help. urfave/cli's own help flag takes a word after it as the name of a command, and therefore
// refuses "gangrun run --help -- python train.py".
func helpFlag() cli.Flag {
	return &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}
}

// helpAsked reports whether the command line has --help, before or after the name of the command.
func helpAsked(c *cli.Context) bool {
	return slices.ContainsFunc(c.Lineage(), func(c *cli.Context) bool { return c.Bool("help") })
}

// withHelp adds --help to a command.
func withHelp(command *cli.Command) {
	options := " [OPTIONS]"
	if len(command.Flags) == 0 || strings.HasPrefix(command.ArgsUsage, "[OPTIONS]") {
		options = ""
	}
	command.UsageText = strings.TrimSpace("gangrun " + command.Name + options + " " + command.ArgsUsage)
	command.Flags = append(command.Flags, helpFlag())
	action := command.Action
	command.Action = func(c *cli.Context) error {
		if helpAsked(c) {
			cli.HelpPrinter(c.App.Writer, cli.CommandHelpTemplate, command)
			return nil
		}
		return action(c)
	}
}

// valueName is what jobFlags adds to the end of a flag's text to name its value.
var valueName = regexp.MustCompile(`; (?:as )?[A-Z0-9=:,]+( \(default: .*\))?$`)

// flagText changes the text of a flag in the help. The library writes the name of the flag's value
// after the flag and again after the text; flagText removes the second.
func flagText(text cli.FlagStringFunc) cli.FlagStringFunc {
	return func(f cli.Flag) string { return valueName.ReplaceAllString(text(f), "$1") }
}
