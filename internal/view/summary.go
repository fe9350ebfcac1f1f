package view

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gangrun/gangrun/supervisor/runreport"
)

// Summary returns the lines of runreport.Summary, in which the command is quoted for a shell.
func Summary(r runreport.Report) []string {
	r.Command = shellWords(r.Command)
	return runreport.Summary(r)
}

// ShellCommand quotes the words of a command for a shell.
func ShellCommand(command []string) string { return strings.Join(shellWords(command), " ") }

func shellWords(command []string) []string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = ShellWord(word)
		// A shell would take the word for an assignment.
		if i == 0 && words[i] == word && strings.Contains(word, "=") {
			words[i] = "'" + word + "'"
		}
	}
	return words
}

// plainWord matches words that need no quotes in any shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellWord quotes a word for a shell. It escapes invisible characters in the form $'...',
// which bash, zsh, ksh and the POSIX standard of 2024 know.
func ShellWord(word string) string {
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
				fmt.Fprintf(&b, `\%03o`, c) // unlike \x, it ends after three digits in every shell
			}
		}
		at += size
	}
	return b.String() + "'"
}

// PrintSummary writes the lines of Summary.
func PrintSummary(w io.Writer, r runreport.Report) error {
	for _, line := range Summary(r) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
