// Package checkpointview prints checkpoints.
package checkpointview

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/gangrun/gangrun/checkpoint"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/view"
)

// Print writes a table of the checkpoints in a directory. The checkpoint from which a job would resume has an asterisk.
func Print(w io.Writer, list []checkpoint.Listed, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  STEP\tAGE\tSIZE\tFORMAT\tVERDICT\tNAME\tWHY")
	for _, l := range list {
		mark, step, age := " ", "", ""
		if l.Newest {
			mark = "*"
		}
		if l.Step >= 0 {
			step = strconv.FormatInt(l.Step, 10)
		}
		if !l.Time.IsZero() {
			age = view.Since(l.Time, now)
		}
		why := l.Why
		if l.NamedBy != "" {
			if why != "" {
				why += "; "
			}
			why += l.NamedBy + " names it"
		}
		fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, step, age, checkpoint.SizeText(l.Bytes), l.Format, l.Verdict,
			text.Printable(filepath.Base(l.Path)), text.Printable(why))
	}
	return t.Flush()
}

// Pruned is what "gangrun checkpoints --prune" has removed or, in a dry run, would remove.
type Pruned struct {
	Checkpoints []checkpoint.Listed `json:"checkpoints"` // the checkpoints before anything was removed
	Removed     []string            `json:"removed"`     // paths
	DryRun      bool                `json:"dry_run"`
}

// PrintPruned writes a line for each checkpoint that was removed. In a dry run, these are the checkpoints that would be
// removed.
func PrintPruned(w io.Writer, removed []checkpoint.Listed, dry bool) error {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	var sum int64
	for _, l := range removed {
		sum += l.Bytes
		fmt.Fprintf(w, "%s %s (%s)\n", verb, text.Printable(l.Path), checkpoint.SizeText(l.Bytes))
	}
	_, err := fmt.Fprintf(w, "%s %s with %s\n", verb, text.Count(len(removed), "checkpoint"), checkpoint.SizeText(sum))
	return err
}
