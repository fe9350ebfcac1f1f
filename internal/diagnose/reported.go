package diagnose

import (
	"cmp"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/laggard"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	abortedBy = textmatch.New(`MPI_ABORT was (?:invoked|called) (?:on|by) rank (\d+)|[Aa]pplication called MPI_Abort\([^)]*\) - process (\d+)|Abort\(-?\d+\) on node \d+ \(rank (\d+) in comm`)
	// codeOf matches the words with which launchers name a rank that failed.
	codeOf = textmatch.New(`Process name: \[\S+,(\d+)\]|due to process rank (\d+) with PID|attempting to start process rank (\d+)|Caught a fatal signal \(proc (\d+)\)`)
)

// reported returns the rank that failed in the way of s according to launchers, or -1 if they name no rank or several.
// If alone is false, one of several ranks also counts if launchers report its failure as the first.
func (s *suspect) reported(members []*member, alone bool) int {
	var aborted, ended, first []int
	for _, m := range members {
		for _, st := range m.streams {
			for _, t := range st.text {
				if a := abortedBy.FindStringSubmatch(t); len(t) < 500 && a != nil {
					aborted = append(aborted, logtext.Number(cmp.Or(a[1], a[2], a[3])))
				}
				if c := codeOf.FindStringSubmatch(t); c != nil {
					ended = append(ended, logtext.Number(cmp.Or(c[1], c[2], c[3], c[4])))
				}
			}
			for _, g := range st.Signs {
				if g.Report == nil || g.Report.Rank < 0 || !s.fits(g.Report) {
					continue
				}
				if ended = append(ended, g.Report.Rank); g.Discount == 0 {
					first = append(first, g.Report.Rank)
				}
			}
		}
	}
	if alone {
		first = nil
	}
	for _, ranks := range [][]int{aborted, ended, first} {
		slices.Sort(ranks)
		if ranks = slices.Compact(ranks); len(ranks) == 1 {
			return ranks[0]
		}
	}
	return -1
}

// retold reports whether a suspect only repeats that a rank ended which gangrun itself had stopped. The gang's launcher
// reports such ends, too.
func (s *suspect) retold(members []*member) bool {
	return s.sign != nil && s.sign.Report != nil && s.member.rank < 0 && slices.ContainsFunc(members, func(m *member) bool {
		return m.rank == s.sign.Report.Rank && m.exit != nil && m.exit.Stopped
	})
}

// fits reports whether a launcher's report of an end can be about the suspect.
func (s *suspect) fits(r *endreport.Report) bool {
	return r.Fits(s.rule.Category, s.signal, s.record != nil, s.sign != nil && s.sign.Class != "")
}

// blameLaggard changes the rank of a suspect that only waited for another rank, or lost it, to that other rank.
func (s *suspect) blameLaggard(members []*member, logs []roster.Log, census *roster.Census) {
	named := s.sign != nil && s.rule.Groups(s.sign.Text)["rank"] != ""
	lost := s.rule.Category == job.NetworkError && s.rule.Is(rule.Cascade)
	if !lost && (s.rule.Category != job.CollectiveTimeout && s.rule.Category != job.Hang || named) {
		return
	}
	waiting, ended := map[int]bool{}, map[int]bool{}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.Signs {
				if g.Report != nil && g.Report.Rank >= 0 {
					ended[g.Report.Rank] = true
				}
				if r := max(m.rank, laggard.Group(g.Text)); r >= 0 && g.Rule.Category == job.CollectiveTimeout {
					waiting[r] = true
				}
			}
		}
	}
	rank := -1
	if lost {
		if rank = laggard.Lost(logs); rank < 0 {
			return
		}
	}
	if rank < 0 && s.stream != nil {
		rank = laggard.Near(s.stream.text, s.sign.From, s.sign.To)
	}
	if rank < 0 {
		if rank = laggard.Apart(logs, census); rank < 0 {
			rank = laggard.Find(logs, census, waiting, ended)
		}
	}
	if rank < 0 && s.rule.Category == job.Hang || rank == s.rank {
		return
	}
	s.rank, s.host = rank, ""
	if i := slices.IndexFunc(members, func(m *member) bool { return m.rank == rank && rank >= 0 }); i >= 0 {
		s.host = members[i].host
	}
}
