package endreport

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
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
