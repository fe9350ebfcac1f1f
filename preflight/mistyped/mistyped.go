// Package mistyped recognises usual mistakes in commands.
package mistyped

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// interpreters has the program that runs a script, by the extension of the script.
var interpreters = map[string]string{".py": "python3", ".sh": "sh", ".bash": "bash", ".pl": "perl", ".rb": "ruby", ".jl": "julia", ".R": "Rscript", ".js": "node"}

// assignment matches a variable assignment before a command in a shell.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// operators are characters in a command that only a shell understands, if they are in the same word as the
// command.
const operators = "&|;<>$`"

// shells has, for words that are no programs but commands of a shell, the shell that runs them.
var shells = map[string]string{
	"cd": "sh -c", ".": "sh -c", "export": "sh -c", "unset": "sh -c", "set": "sh -c", "ulimit": "sh -c", "umask": "sh -c", "exec": "sh -c",
	"eval": "sh -c", "trap": "sh -c", "wait": "sh -c", "read": "sh -c", "alias": "sh -c", "type": "sh -c", "if": "sh -c", "for": "sh -c",
	"while": "sh -c", "until": "sh -c", "case": "sh -c", "{": "sh -c", "(": "sh -c", "!": "sh -c",
	"source": "bash -c", "shopt": "bash -c", "pushd": "bash -c", "declare": "bash -c", "[[": "bash -c", "module": "bash -lc", "conda": "bash -lc",
}

// Slip is a common mistake in a command.
type Slip struct {
	// Signature is "program-shell", "program-quoted", "program-assignment" or "program-here".
	Signature string
	// Instead is what the user should type in place of the command, or of its first words.
	Instead string
}

// Find returns the Slip in a command whose program was not found. here is true if the working directory has a
// file with the program's name. executable is true if that file may be executed. The second result is false if
// the command has no such mistake.
func Find(command []string, here, executable bool) (Slip, bool) {
	first := command[0]
	if fields := strings.Fields(first); len(fields) > 1 && !spacedPath(fields) { // the user has quoted the command
		if shell := shells[fields[0]]; shell != "" || strings.ContainsAny(first, operators) {
			return Slip{"program-shell", shellCommand(shell, []string{first})}, true
		}
		words := slices.Concat(fields, command[1:])
		if flags := assignments(words); len(flags) > 0 {
			words = slices.Concat(flags, []string{"--"}, words[len(flags):])
		}
		return Slip{"program-quoted", strings.Join(words, " ")}, true
	}
	if flags := assignments(command); len(flags) > 0 {
		return Slip{"program-assignment", strings.Join(flags, " ")}, true
	}
	if shell := shells[first]; shell != "" {
		return Slip{"program-shell", shellCommand(shell, command)}, true
	}
	if here {
		var instead []string
		if by := interpreters[path.Ext(first)]; by != "" {
			instead = append(instead, by+" "+first)
		}
		if executable {
			instead = append(instead, "./"+first)
		}
		if len(instead) > 0 {
			return Slip{"program-here", strings.Join(instead, ", or ")}, true
		}
	}
	return Slip{}, false
}

// assignments returns the flags that set the variables with which a command begins.
func assignments(words []string) (flags []string) {
	for _, word := range words {
		if !assignment.MatchString(word) {
			break
		}
		if strings.ContainsAny(word, operators+" '\"\\*?[]()#~!\t\n") {
			word = Quote(word)
		}
		flags = append(flags, "-e "+word)
	}
	return flags
}

// spacedPath reports whether words may be one path with blanks in the name of a directory.
func spacedPath(words []string) bool {
	return strings.HasPrefix(words[0], "/") && slices.ContainsFunc(words[1:], func(w string) bool { return strings.Index(w, "/") > 0 })
}

// shellCommand returns a command line with which a shell runs words.
func shellCommand(shell string, words []string) string {
	return cmp.Or(shell, "sh -c") + " " + Quote(strings.Join(words, " "))
}

// Quote quotes a word so that a person can paste it into a shell.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
