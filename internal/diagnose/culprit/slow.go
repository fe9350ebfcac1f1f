package culprit

import (
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// slow is how a program or a watcher names a rank that is slower than the others.
var slow = textmatch.New(`(?i)\bstraggler\w*\(rank=(\d{1,5})|\brank[ #:=]{0,2}(\d{1,5})\b(?: \([^()]*\))? (?:is|was|runs|remains|stays)\b.{0,30}\b(?:slow\w*|straggl\w+|behind|lagg\w+)|\b(?:slowest|straggler|laggard|slow)(?: is|:)? (?:rank|worker|process)s?[ #:=]{0,2}(\d{1,5})\b`)

// slowUnit is the number of the first rank in the words of a watcher, which may call ranks as the program does.
var slowUnit = textmatch.New(`(?i)\b(?:(?:rank|worker|member|replica|trainer|shard|task|proc|process|rk|pe|mpi) ?[#:=_-]?|[rwmp])(\d{1,5})\b`)

// silentFrom is the number of a rank that a watcher has not heard of.
var silentFrom = textmatch.New(`(?i)\b(?:from|of|on|by) (\d{1,5})(?:$|[,;.:)] ?|(?: since| for| in| after)\b)`)

// Hung returns the rank that the message of a supervising program calls silent or stuck. It returns -1 if there is none,
// or if the rank is not in ranks, which are the ranks that the logs name.
func Hung(title string, ranks map[int]bool) int {
	title = title[:min(len(title), 200)]
	for _, p := range []*textmatch.Pattern{slowUnit, silentFrom} {
		if m := p.FindStringSubmatch(title); m != nil && ranks[logtext.Number(m[1])] {
			return logtext.Number(m[1])
		}
	}
	return -1
}

// Slow returns the slow rank: the one that the report with this title names, or else the one that most lines of the
// logs call slow. It returns -1 if there is neither.
func Slow(title string, logs []roster.Log) int {
	if m := slow.FindStringSubmatch(title); m != nil {
		return logtext.Number(m[1] + m[2] + m[3])
	}
	if m := slowUnit.FindStringSubmatch(title[:min(len(title), 200)]); m != nil {
		return logtext.Number(m[1])
	}
	best, times := -1, map[int]int{}
	for _, l := range logs {
		for _, t := range l.Text {
			if len(t) > 400 {
				continue
			}
			if m := slow.FindStringSubmatch(t); m != nil {
				r := logtext.Number(m[1] + m[2] + m[3])
				if times[r]++; best < 0 || times[r] > times[best] {
					best = r
				}
			}
		}
	}
	return best
}
