package ssh

import (
	"strconv"
	"strings"
)

// report is what the script reports about one directory.
type report struct {
	place   int
	verdict string // there, can (receive it), no, damaged, bad (wrong hash), dead (does not run), none (no directory is left)
	path    string // for can: the form that the host asks for
	words   string // what the tools of the host printed
}

// reportMark is the beginning of a report. A login shell may print other text before it.
const reportMark = "@gangrun "

// parseReports parses the output of the script.
func parseReports(text string) []report {
	var reports []report
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		rest, ok := strings.CutPrefix(line, reportMark)
		if !ok && len(reports) == 0 { // a login shell may print text without the end of its line
			_, rest, ok = strings.Cut(line, reportMark)
		}
		if !ok {
			if n := len(reports); n > 0 && line != "" {
				if w := &reports[n-1].words; *w == "" {
					*w = line
				} else {
					*w += ", " + line
				}
			}
			continue
		}
		place, rest, _ := strings.Cut(rest, " ")
		verdict, path, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(place)
		if err != nil || n < 0 || n > places {
			continue
		}
		reports = append(reports, report{place: n, verdict: verdict, path: path})
	}
	return reports
}
