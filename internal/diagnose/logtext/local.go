package logtext

import (
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// bothRanks matches a rank together with its local rank, as torchrun's table has them.
	bothRanks = textmatch.New(`\brank *[:=] ?(\d{1,6})\W{1,3}local_rank[:=] ?(\d{1,4})\b`)
	// saysRank matches a program's own rank at the beginning of a message.
	saysRank = textmatch.New(`(?i)^(?:[\w.]+(?:Error|Exception): )?\W{0,2}(?:global[_ ]?)?rank[ =:]{0,2}(\d{1,6})\b[^/]`)
)

// FirstRank returns the rank of the first process of a host, if the lines of the host's log show it: some lines have
// only the number of a process on its host as their rank (LocalRanks), and others name both that number and the rank.
// ok is false if no line shows it, or if lines contradict one another.
func FirstRank(lines []job.Line) (first int, ok bool) {
	for _, l := range lines {
		rank, local := -1, l.Rank-LocalRanks
		if m := bothRanks.FindStringSubmatch(l.Text); m != nil {
			rank, local = Number(m[1]), Number(m[2])
		} else if local < 0 {
			continue
		} else if m := saysRank.FindStringSubmatch(l.Text); m != nil {
			rank = Number(m[1])
		}
		if rank < local || rank < 0 {
			continue
		}
		if ok && rank-local != first {
			return 0, false
		}
		first, ok = rank-local, true
	}
	return first, ok
}
