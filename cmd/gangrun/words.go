package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/jobfile"
)

// ordered returns the words of a command line in the order that the flag parser needs: the flags of
// a command before its arguments. It leaves the words of a job's own command as they are, and moves
// only flags that are between a job file and "--". It writes "--" before a job's command twice,
// because the parser removes one. It adds a value to a flag that has none, if the flag may be used
// without one. "help COMMAND" becomes "COMMAND --help".
func ordered(a *cli.App, words []string) []string {
	at := 1
	for at < len(words) && strings.HasPrefix(words[at], "-") {
		at++
	}
	if at >= len(words) || words[len(words)-1] == "--generate-bash-completion" {
		return words
	}
	if words[at] == "help" { // the name of a command follows, or nothing
		return slices.Concat(words[:at], words[at+1:min(at+2, len(words))], []string{"--help"})
	}
	command := a.Command(words[at])
	if command == nil || command.SkipFlagParsing {
		return words
	}
	flags, arguments, whole := partition(command, words[at+1:])
	head := slices.Concat(words[:at+1], flags)
	if !whole { // the parser reports the flag without a value
		return head
	}
	return slices.Concat(head, arguments)
}

// partition divides the words of a command into flags and arguments. whole is false if the last
// flag lacks its value.
func partition(command *cli.Command, words []string) (flags, arguments []string, whole bool) {
	ofJob := slices.Contains(jobCommands, command.Name)
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && ofJob && len(arguments) == 0:
			return flags, slices.Concat([]string{"--"}, words[i:]), true
		case word == "--" && ofJob:
			return flags, slices.Concat(arguments, words[i:]), true
		case word == "--":
			return flags, slices.Concat([]string{"--"}, arguments, words[i+1:]), true
		case strings.HasPrefix(word, "-") && word != "-":
		case ofJob && (len(arguments) > 0 || !isJobFile(word)): // the job's own words
			return flags, slices.Concat(arguments, words[i:]), true
		default:
			arguments = append(arguments, word)
			continue
		}
		name, _, given := strings.Cut(word, "=")
		name = strings.TrimLeft(name, "-")
		if value := jobfile.Alone(name); ofJob && !given && value != "" && !numberAt(words, i+1) {
			flags = append(flags, word+"="+value)
			continue
		}
		flags = append(flags, word)
		if !given && takesValue(command, name) {
			if i++; i == len(words) {
				return flags, nil, false
			}
			flags = append(flags, words[i])
		}
	}
	return flags, arguments, true
}

// numberAt reports whether there is a word at i that begins like a number. If a flag may be used without a value, the
// word after the flag is its value only if that word begins like a number.
func numberAt(words []string, i int) bool {
	if i >= len(words) {
		return false
	}
	digits := strings.TrimPrefix(words[i], "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9'
}

// takesValue reports whether the flag with that name needs a value.
func takesValue(command *cli.Command, name string) bool {
	return slices.ContainsFunc(command.Flags, func(f cli.Flag) bool {
		documented, ok := f.(cli.DocGenerationFlag)
		return ok && documented.TakesValue() && slices.Contains(f.Names(), name)
	})
}
