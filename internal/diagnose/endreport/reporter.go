package endreport

import (
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// reporter matches the words with which Open MPI names the rank that reports an MPI error.
var reporter = textmatch.New(`reported by process \[\d+,(\d+)\]`)

// Reporter returns the rank that Open MPI names in the lines beside an error of MPI, or -1.
func Reporter(lines []string) int {
	for _, t := range lines {
		if m := reporter.FindStringSubmatch(t); m != nil {
			return logtext.Number(m[1])
		}
	}
	return -1
}
