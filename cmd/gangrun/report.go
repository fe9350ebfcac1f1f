package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/supervisor"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:        "report",
		Usage:       "tell what became of a run: attempts, causes, verdicts, times",
		ArgsUsage:   "[OPTIONS] [RUN]",
		Description: "RUN is an ID or the beginning of one; last, or nothing, is the newest run.",
		Flags:       []cli.Flag{formatFlag()},
		Action: onRun(func(c *cli.Context, run home.Run, asJSON bool) error {
			report, _, err := readReport(run)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.App.Writer, report)
			}
			return printSummary(c.App.Writer, report)
		}),
	}
}

// summary is what supervisor.Summary tells, with a command that a shell takes.
func summary(r supervisor.Report) []string {
	words := make([]string, len(r.Command))
	for i, word := range r.Command {
		words[i] = shellWord(word)
		if i == 0 && words[i] == word && strings.Contains(word, "=") { // a variable is not meant
			words[i] = "'" + word + "'"
		}
	}
	r.Command = words
	return supervisor.Summary(r)
}

// plainWord is a word that means itself to every shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord quotes what a shell would not take for itself. Characters that would not
// be seen are escaped, as bash, zsh, ksh and POSIX 2024 read them.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	if utf8.ValidString(word) && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for at := 0; at < len(word); {
		r, size := utf8.DecodeRuneInString(word[at:])
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(word[at : at+size]) {
				fmt.Fprintf(&b, `\%03o`, c) // unlike \x it ends after three digits everywhere
			}
		}
		at += size
	}
	return b.String() + "'"
}

// printSummary prints what summary tells.
func printSummary(w io.Writer, r supervisor.Report) error {
	for _, line := range summary(r) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
