package main

import (
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/suggest"
)

// otherCommands maps names of commands that other programs have to the commands of gangrun that do the same.
var otherCommands = map[string]string{
	"list": "ps", "ls": "ps", "jobs": "ps", "queue": "ps", "runs": "ps",
	"kill": "stop", "cancel": "stop", "abort": "stop", "end": "stop",
	"start": "run", "exec": "run", "launch": "run", "train": "run",
	"tail": "logs", "output": "logs", "show": "status", "info": "status", "watch": "attach", "resume": "attach",
	"rm": "clean", "remove": "clean", "delete": "clean", "prune": "clean",
	"check": "preflight", "validate": "preflight", "test": "preflight", "trial": "preflight",
	"mpirun": "mpiexec", "gpus": "topo", "nodes": "topo", "hosts": "topo", "why": "diagnose", "version": "--version",
}

// otherFlags maps flags of other programs, and of other commands of gangrun, to what the user should type instead. A
// command uses an entry only if it has the flag that the entry suggests.
var otherFlags = map[string]string{
	"np": "-n", "nproc": "-n", "ntasks": "-n", "nproc-per-node": "-n", "nproc_per_node": "-n",
	"host": "--hosts", "H": "--hosts", "nodelist": "--hosts", "nnodes": "--hosts", "machinefile": "--hostfile", "f": "--hostfile",
	"gpus": "--gpus-per-rank", "x": "--env", "wdir": "--workdir", "cwd": "--workdir", "chdir": "--workdir",
	"max-restarts": "--retries", "max_restarts": "--retries", "time": "--timeout", "d": "--detach", "background": "--detach",
	"json": "-o json", "format": "-o json", "no-preflight": "--preflight off", "skip-preflight": "--preflight off",
	"everything": "--older 0s", "all": "--older 0s", "clear": "--release", "tail": "--follow",
}

// onUsageError turns an error of the flag parser into an error with a hint.
func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "gangrun"
	var known []string
	if c.Command != nil {
		if c.Command.Name != "" && c.Command.Name != name {
			name += " " + c.Command.Name
		}
		for _, f := range c.Command.Flags {
			known = append(known, f.Names()...)
		}
	}
	hint := name + " --help lists the flags"
	if flag, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		flag = strings.TrimLeft(flag, "-")
		if meant := meantFlag(flag, known); meant != "" {
			hint = "did you mean " + meant + "? " + hint
		}
		return failure.Usage(hint, "%s has no flag %q", name, typed(c, flag))
	}
	return failure.Usage(hint, "%w", err)
}

// typedWords is the key in an app's metadata for the words of the command line.
const typedWords = "words"

// typed returns a flag as the user typed it, with one dash or two. The flag parser does not pass the dashes on.
func typed(c *cli.Context, flag string) string {
	words, _ := c.App.Metadata[typedWords].([]string)
	for _, word := range words {
		word, _, _ = strings.Cut(word, "=")
		if strings.HasPrefix(word, "-") && strings.TrimLeft(word, "-") == flag {
			return word
		}
	}
	return dashed(flag)
}

// dashed returns the name of a flag with its dashes.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// meantFlag returns what to type in place of a flag that does not exist, such as a flag of another
// program, -n4 for -n 4, or a mistyped flag. It returns "" if that is not known.
func meantFlag(flag string, known []string) string {
	if meant := otherFlags[flag]; meant != "" {
		name, _, _ := strings.Cut(strings.TrimLeft(meant, "-"), " ")
		if slices.Contains(known, name) {
			return meant
		}
	}
	if letter, value := flag[:min(1, len(flag))], flag[min(1, len(flag)):]; value != "" && slices.Contains(known, letter) &&
		!strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsDigit(r) }) {
		return "-" + letter + " " + value
	}
	if near := suggest.Nearest(flag, known); near != "" {
		return dashed(near)
	}
	return ""
}

// unknownCommand returns the error for a command that does not exist.
func unknownCommand(a *cli.App, name string) error {
	var names []string
	for _, c := range a.Commands {
		names = append(names, c.Name)
	}
	hint := "gangrun --help lists the commands"
	meant := otherCommands[name]
	if meant == "" {
		meant = suggest.Nearest(name, names)
	}
	if meant != "" {
		hint = "did you mean gangrun " + meant + "? " + hint
	} else if isJobFile(name) {
		hint = "a job is started by gangrun run " + name
	}
	return failure.Usage(hint, "there is no command %q", name)
}
