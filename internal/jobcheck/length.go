package jobcheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/template"
)

// MaxString is the largest length in bytes of one argument or variable (NAME=VALUE) of a new process on Linux. It is
// MAX_ARG_STRLEN of execve(2), without the NUL byte at the end.
const MaxString = 128<<10 - 1

// LengthError is the error if an argument or a variable is too long for any process.
type LengthError struct {
	What   string // as in `the argument "xxx..."`
	Length int
}

// Error returns the length and the limit.
func (e *LengthError) Error() string {
	return fmt.Sprintf("%s is %d bytes long, but Linux gives a process none of more than %d", e.What, e.Length, MaxString)
}

// Hint says what to do.
func (*LengthError) Hint() string {
	return "write it to a file, and give the program the name of that file"
}

// lengths returns an error for each argument and variable of the job that is too long.
func lengths(s job.Spec) (errs []error) {
	seen := map[string]bool{}
	for _, command := range Commands(s) {
		for _, arg := range command {
			if len(arg) > MaxString && !seen[arg] {
				seen[arg] = true
				errs = append(errs, &LengthError{"the argument " + shortened(arg) + " of the command", len(arg)})
			}
		}
	}
	for _, env := range environments(s) {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if length := len(name) + len("=") + len(env[name]); length > MaxString {
				errs = append(errs, &LengthError{"the environment variable " + shortened(name) + " with its value", length})
			}
		}
	}
	return errs
}

// environments returns the variables that the job sets for every rank, for the trial, and for the ranks of each
// program.
func environments(s job.Spec) []map[string]string {
	all := []map[string]string{s.Env, s.Trial.Env}
	for _, app := range s.Apps {
		all = append(all, app.Env)
	}
	return all
}

// Commands returns the commands that the job will start, if they are known now. It returns the commands for every
// program and for the trial, for the first and the last rank, and with and without a checkpoint to resume from. It
// omits commands whose templates cannot be expanded.
func Commands(s job.Spec) (commands [][]string) {
	raw := [][]string{s.Command}
	for _, app := range s.Apps {
		raw = append(raw, app.Command)
	}
	trial := s.Trial.Command
	if len(trial) == 0 {
		trial = s.Command
	}
	raw = append(raw, slices.Concat(trial, s.Trial.Args))
	for _, command := range raw {
		if !slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, "{{") }) {
			commands = append(commands, command)
			continue
		}
		for _, rank := range []int{0, max(s.Ranks-1, 0)} {
			for _, from := range []string{"", cmp.Or(s.CheckpointDir, "/")} { // a checkpoint has a longer path
				fields := template.Fields{Rank: rank, LocalRank: rank, CheckpointDir: s.CheckpointDir, ResumeFrom: from}
				if expanded, err := template.Expand(command, fields); err == nil {
					commands = append(commands, expanded)
				}
			}
		}
	}
	return commands
}

// shortened returns the beginning of a text, in quotes.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", strings.ToValidUTF8(text[:most], ""))
}
