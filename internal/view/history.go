package view

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/internal/history"
	"github.com/gangrun/gangrun/internal/text"
)

// PrintHistory writes a table of runs that have ended. A run without a name is shown by its
// command.
func PrintHistory(w io.Writer, runs []history.Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENDED\tRUN\tNAME\tSTATE\tCAUSE\tSTEP\tTEXT")
	for _, e := range runs {
		words := make([]string, len(e.Command))
		for i, word := range e.Command {
			words[i] = ShellWord(word)
		}
		cause, step := string(e.Category), ""
		if e.Signature != "" {
			cause += " (" + e.Signature + ")"
		}
		if e.Times > 1 {
			cause += fmt.Sprintf(", %d times", e.Times)
		}
		if e.Step >= 0 {
			step = strconv.FormatInt(e.Step, 10)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Ended.Local().Format(time.DateTime), e.Run,
			shortened(cmp.Or(e.Name, strings.Join(words, " ")), maxJobName), e.State, cause, step, text.Printable(e.Text))
	}
	return t.Flush()
}

// maxJobName is the maximum number of characters of a job's name or command in a table.
const maxJobName = 32

// shortened returns the printable characters of s, shortened to a maximum number of characters.
func shortened(s string, most int) string {
	all := []rune(text.Printable(s))
	if len(all) <= most {
		return string(all)
	}
	return string(all[:most-3]) + "..."
}
