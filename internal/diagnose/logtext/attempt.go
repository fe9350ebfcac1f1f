package logtext

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var attemptName = textmatch.New(`(?:^|/)attempts?[_-]?/?(\d+)/`)

// LastAttempt returns lines without those of earlier attempts. The name of a log shows its attempt, as in
// attempt_2/rank_0.log. LastAttempt keeps the lines of logs whose names show no attempt.
func LastAttempt(lines []job.Line) []job.Line {
	last, of := -1, map[string]int{}
	for _, l := range lines {
		n, seen := of[l.File]
		if !seen {
			n = -1
			if m := attemptName.FindStringSubmatch(l.File); m != nil {
				n = Number(m[1])
			}
			of[l.File] = n
		}
		last = max(last, n)
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l job.Line) bool { n := of[l.File]; return n >= 0 && n < last })
}
