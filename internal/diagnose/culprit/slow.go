package culprit

import (
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// slow matches the words with which a program or a watcher names a rank that is slower than the others. The word for
// slowness may stand before the rank, before a list of ranks, or after the rank.
var slow = textmatch.New(`(?i)\bstraggler\w*\(rank=(\d{1,5})|\b` + unitWord + `[ #:=]{0,2}(\d{1,5})\b(?: \([^()]*\)| (?:on|at) [\w.-]+)?(?: (?:is|was|runs|remains|stays)\b.{0,30}\b(?:slow\w*|straggl\w+|behind|lagg\w+)|:? (?:lagg\w+|(?:(?:is|was|at|takes|took|runs at) )?\d+(?:\.\d+)? ?(?:x|×|times|%) (?:slower|the (?:median|mean|average))))\b|` +
	`\b(?:slow(?:est)?|straggl\w+|laggards?|lagging|worst|affected|culprit|offending|outlying)(?: is|:)? ?(?:` + unitWord + `(?: ids?)?|ids?)["']?[ #:=\[{("']{0,5}(\d{1,5})\b|\b(?:slow|straggl\w+|affected)_` + unitWord + `["']?[ :=\[{(]{1,5}(\d{1,5})\b|\b(?:slowest|stragglers?|laggard)["']?[:=]{1,2} ?\W?(?:` + unitWord + `)?[ #=]{0,2}(\d{1,5})\b|` +
	`\b` + unitWord + ` (?:below|under|above|over) (?:the )?(?:threshold|limit|median)\b(?: [\d.]+%?)?[ :=\[{(]{1,4}(\d{1,5})\b|\b` + unitWord + `[ #:=]{0,2}(\d{1,5})\b[^\]]{0,30}?: ?\d[\d.]* ?m?s\b.{0,20}\b(?:median|mean|average)\b`)

// unitWord matches a word for one or several ranks.
const unitWord = `(?:rank|worker|process|proc|task|pe|member|replica)s?`

// slowRank returns the rank that a line calls slow, or -1.
func slowRank(t string) int {
	m := slow.FindStringSubmatch(t)
	for i := 1; i < len(m); i++ {
		if m[i] != "" {
			return logtext.Number(m[i])
		}
	}
	return -1
}

// percentile matches names of percentiles, such as "p99", which look like names of ranks.
var percentile = textmatch.New(`\bp(?:50|75|9\d{1,2})\b`)

// slowUnit matches the name of a rank in the words of a watcher, which may name ranks as the program does.
var slowUnit = textmatch.New(`(?i)\b(?:(?:rank|worker|member|replica|trainer|shard|task|proc|process|rk|pe|mpi) ?[#:=_-]?|[rwmp])(\d{1,5})\b`)

// silentFrom matches the number of a rank from which a watcher has heard nothing.
var silentFrom = textmatch.New(`(?i)\b(?:from|of|on|by) (\d{1,5})(?:$|[,;.:)] ?|(?: since| for| in| after)\b)`)

// Hung returns the rank that the message of a supervising program calls silent or stuck. It returns -1 if there is
// none, or if the rank is not in ranks, which are the ranks that the logs name.
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
	if r := slowRank(title); r >= 0 {
		return r
	}
	if m := slowUnit.FindStringSubmatch(percentile.ReplaceAllString(title[:min(len(title), 200)], "")); m != nil {
		return logtext.Number(m[1])
	}
	best, times := -1, map[int]int{}
	for _, l := range logs {
		for _, t := range l.Text {
			if len(t) > 400 {
				continue
			}
			if r := slowRank(t); r >= 0 {
				if times[r]++; best < 0 || times[r] > times[best] {
					best = r
				}
			}
		}
	}
	return best
}
