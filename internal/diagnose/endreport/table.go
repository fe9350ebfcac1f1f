package endreport

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// Failure is what torchrun's table says of a rank that failed.
type Failure struct {
	Rank int
	Text string // the exception with its traceback, if the rank has recorded it
}

// Table returns the ranks of torchrun's tables of failures.
func Table(text []string) (all []Failure) {
	open := false
	for _, t := range text {
		switch m := torchRank.FindStringSubmatch(t); {
		case m != nil:
			all, open = append(all, Failure{Rank: logtext.Number(m[1])}), true
		case strings.HasPrefix(t, "-----") || strings.HasPrefix(t, "=====") || strings.HasPrefix(t, "["):
			open = false
		case open:
			all[len(all)-1].Text += t + "\n"
		}
	}
	return all
}

// moreAborted matches Open MPI's line that further ranks have called MPI_Abort.
var moreAborted = textmatch.New(`\] (\d{1,6}) more process(?:es)? (?:has|have) sent help message help-mpi-api\.txt / mpi-abort`)

// MoreAborted returns how many further ranks have called MPI_Abort, if a line of Open MPI says so, else 0.
func MoreAborted(t string) int {
	if m := moreAborted.FindStringSubmatch(t); m != nil {
		return logtext.Number(m[1])
	}
	return 0
}

// tableSignal matches the field of torchrun's table of failures which says that SIGTERM ended a rank.
var tableSignal = textmatch.New(`^\s*traceback\s*: Signal 15 \(SIGTERM\) received by PID \d+`)

// TableSignal reports whether a line of torchrun's table of failures says that SIGTERM ended a rank.
func TableSignal(t string) bool { return tableSignal.MatchString(t) }
