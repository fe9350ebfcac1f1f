package preflight

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// interpreters are what runs a script, by the end of its name.
var interpreters = map[string]string{".py": "python3", ".sh": "sh", ".bash": "bash", ".pl": "perl", ".rb": "ruby", ".jl": "julia", ".R": "Rscript", ".js": "node"}

// assignment is a variable as a shell takes it before a command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// operators are what only a shell understands, where they stand in one word with a
// command.
const operators = "&|;<>$`"

// shells are the shells that run what is no program of its own.
var shells = map[string]string{
	"cd": "sh -c", ".": "sh -c", "export": "sh -c", "unset": "sh -c", "set": "sh -c", "ulimit": "sh -c", "umask": "sh -c", "exec": "sh -c",
	"eval": "sh -c", "trap": "sh -c", "wait": "sh -c", "read": "sh -c", "alias": "sh -c", "type": "sh -c", "if": "sh -c", "for": "sh -c",
	"while": "sh -c", "until": "sh -c", "case": "sh -c", "{": "sh -c", "(": "sh -c", "!": "sh -c",
	"source": "bash -c", "shopt": "bash -c", "pushd": "bash -c", "declare": "bash -c", "[[": "bash -c", "module": "bash -lc", "conda": "bash -lc",
}

// slip returns the Hit for a program that is missing since the command was mistyped
// in a usual way, and whether it was.
func slip(s job.Spec, p job.ProgramFact) (Hit, bool) {
	first := s.Command[0]
	hit := func(signature, instead string) (Hit, bool) {
		return Hit{Signature: signature, Path: p.Path, Values: about(p.Path, "instead", instead)}, true
	}
	if fields := strings.Fields(first); len(fields) > 1 && !spacedPath(fields) { // it was quoted
		if shell := shells[fields[0]]; shell != "" || strings.ContainsAny(first, operators) {
			return hit("program-shell", shellCommand(shell, []string{first}))
		}
		words := slices.Concat(fields, s.Command[1:])
		if flags := assignments(words); len(flags) > 0 {
			words = slices.Concat(flags, []string{"--"}, words[len(flags):])
		}
		return hit("program-quoted", strings.Join(words, " "))
	}
	if flags := assignments(s.Command); len(flags) > 0 {
		return hit("program-assignment", strings.Join(flags, " "))
	}
	if shell := shells[first]; shell != "" {
		return hit("program-shell", shellCommand(shell, s.Command))
	}
	if p.Here != "" {
		var instead []string
		if by := interpreters[path.Ext(first)]; by != "" {
			instead = append(instead, by+" "+first)
		}
		if p.Executable {
			instead = append(instead, "./"+first)
		}
		if len(instead) > 0 {
			return hit("program-here", strings.Join(instead, ", or "))
		}
	}
	return Hit{}, false
}

// assignments returns the flags that set the variables with which a command begins.
func assignments(words []string) (flags []string) {
	for _, word := range words {
		if !assignment.MatchString(word) {
			break
		}
		if strings.ContainsAny(word, operators+" '\"\\*?[]()#~!\t\n") {
			word = shellQuoted([]string{word})[0]
		}
		flags = append(flags, "-e "+word)
	}
	return flags
}

// spacedPath reports whether words may be one path in which a directory's name has
// blanks.
func spacedPath(words []string) bool {
	return strings.HasPrefix(words[0], "/") && slices.ContainsFunc(words[1:], func(w string) bool { return strings.Index(w, "/") > 0 })
}

// shellCommand is a command line that has a shell run words.
func shellCommand(shell string, words []string) string {
	return cmp.Or(shell, "sh -c") + " " + shellQuoted([]string{strings.Join(words, " ")})[0]
}
