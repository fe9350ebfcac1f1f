package activity

import (
	"fmt"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// Nothing returns the Cause of an attempt in which no failure was found.
func Nothing(e job.Evidence, live bool) job.Cause {
	c := job.Cause{Rank: -1, Retry: job.RetryNever, Evidence: []job.Line{}}
	good, stopped := 0, 0
	for _, x := range e.Outcome.Exits {
		if x.Good() {
			good++
		}
		if x.Stopped {
			stopped++
		}
	}
	switch {
	case live && good == len(e.Outcome.Exits):
		c.Text = "every rank ended by itself with code 0"
	case live && stopped > 0:
		c.Text = "gangrun ended the gang; no rank had failed before"
	default:
		files := map[string]bool{}
		for _, l := range e.Lines {
			files[l.File] = true
		}
		c.Text = fmt.Sprintf("no known sign of a failure in the last %d lines of %d logs", len(e.Lines), len(files))
		c.Hint = "look at the last lines of the rank that ended first; logs of every rank tell more than one"
	}
	return c
}

// Absent names the ranks that did not wait with the others, as the end of a sentence. It returns an empty text if there
// are none or many.
func Absent(waited map[int]bool, ranks int) string {
	var missing []string
	for r := range ranks {
		if !waited[r] && len(missing) < 9 {
			missing = append(missing, fmt.Sprint(r))
		}
	}
	switch {
	case len(missing) == 0 || len(missing) == 9:
		return ""
	case len(missing) == 1:
		return "; rank " + missing[0] + " did not wait with the others"
	}
	return "; ranks " + strings.Join(missing, ", ") + " did not wait with the others"
}
