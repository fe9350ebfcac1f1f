package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// absentRank names a rank that others wait for.
	absentRank = textmatch.New(`(?i)\branks? \[?(\d{1,6})[\d, ]*\]?\b.{0,60}\b(?:did not|didn't|never|has not|have not|not yet|failed to|missing|is missing|absent|lagging|behind|unresponsive|stuck|not (?:join|reach|enter|respond|arriv))|` +
		`(?i)\b(?:missing|waiting for|stalled|lagging|slow|absent|unresponsive|late)\b.{0,30}\branks?\b\W{0,6}(\d{1,6})|` +
		`^Rank (\d{1,6}) -- GPU \d+ managed by process|\btask:(\d{1,6})\b|\brank[ =:](\d{1,6})\b.{0,80}\b(?:state [DT]\b|wchan|\[[DT]\]|stopped\b)`)
	stalledList = textmatch.New(`(?i)^(?:stalled|missing) ranks:?\s*$`)
	stalledRank = textmatch.New(`^\s*\[?(\d{1,6})\]?: ?\[`)
	enqueued    = textmatch.New(`(?i)last enqueued (?:nccl )?work: (-?\d+)`)
	groupRank   = textmatch.New(`\[(?:PG (?:ID )?\d+ (?:PG GUID \S+ )?)?Rank (\d{1,6})\]`)
	worldSize   = textmatch.New(`(?i)\b(?:world[_ ]?size|nranks|num_processes|nproc|n_?procs|total ranks)\b["']?\W{0,4}(\d{1,5})\b|\bon (\d{1,5}) (?:ranks|processes|gpus)\b|\bNCCL version .*nranks (\d{1,5})`)
	stepCount   = textmatch.New(`(?i)\b(?:step|iter(?:ation)?|it|batch|global_step|epoch|pass|query|partition|chunk|block|cycle|sweep)s?\b[ :=#(\[]{0,3}(\d{1,9})`)
	joined      = textmatch.New(`\b(\d{1,5})/(\d{1,5}) (?:clients|workers|ranks) joined`)
)

// laggard returns the rank for which the others waited when they gave up, or -1 if the logs do not show it.
// It is, in this order: the rank that a report names; the one that is behind in the count of its collectives;
// the only one that did not wait; the one that made the fewest steps.
func laggard(members []*member, waiting map[int]bool) int {
	behind, counted := map[int]int{}, 0
	for _, m := range members {
		for _, st := range m.streams {
			list := false
			for i, t := range st.text {
				if len(t) > 2000 {
					continue
				}
				if list = list && strings.TrimSpace(t) != "" || stalledList.MatchString(t); list {
					if r := stalledRank.FindStringSubmatch(t); r != nil {
						return logtext.Number(r[1])
					}
				}
				if r := absentRank.FindStringSubmatch(t); r != nil && !advice(t) {
					return logtext.Number(cmp.Or(r[1], r[2], r[3], r[4], r[5]))
				}
				if c := enqueued.FindStringSubmatch(t); c != nil {
					rank := m.rank
					if r := groupRank.FindStringSubmatch(st.lines[i].Text); rank < 0 && r != nil {
						rank = logtext.Number(r[1])
					}
					if rank >= 0 {
						behind[rank] = logtext.Number(c[1])
						counted++
					}
				}
			}
		}
	}
	if r := onlyLowest(behind); r >= 0 {
		return r
	}
	if r := onlyMissing(members, waiting); r >= 0 {
		return r
	}
	if r := notHeard(members); r >= 0 {
		return r
	}
	if r := notReported(members); r >= 0 {
		return r
	}
	return fewestSteps(members, clearlyBehind)
}

// fewestSteps returns the rank that has counted fewer steps than any other, or -1. Of two ranks, it must be
// behind by at least gap.
func fewestSteps(members []*member, gap int) int {
	steps := map[int]int{}
	for _, m := range members {
		for _, st := range m.streams {
			for _, t := range st.text {
				c := stepCount.FindStringSubmatch(t)
				if len(t) >= 400 || c == nil {
					continue
				}
				rank := m.rank
				if rank < 0 {
					rank = roster.Own(t)
				}
				if rank >= 0 {
					steps[rank] = max(steps[rank], logtext.Number(c[1]))
				}
			}
		}
	}
	if len(steps) != 2 {
		return onlyLowest(steps)
	}
	lowest, most := -1, 0
	for r, n := range steps {
		if lowest < 0 || n < steps[lowest] {
			lowest = r
		}
		most = max(most, n)
	}
	if most-steps[lowest] < gap {
		return -1
	}
	return lowest
}

// clearlyBehind is how many steps one of two ranks must be behind if it may only be slow.
const clearlyBehind = 3

var maybe = textmatch.New(`most likely|\bmay be\b|can be caused`)

// absentReach is how many lines around a sign may name the rank for which others wait.
const absentReach = 12

// absentNear returns the rank that the lines of a sign, or those around it, name as the one that others wait
// for, or -1.
func absentNear(text []string, g *sign) int {
	for _, part := range [][2]int{{g.from, g.to}, {g.to, min(len(text), g.to+absentReach)}, {max(0, g.from-absentReach), g.from}} {
		for _, t := range text[part[0]:part[1]] {
			if r := absentRank.FindStringSubmatch(t); len(t) < 2000 && r != nil && !advice(t) {
				return logtext.Number(cmp.Or(r[1], r[2], r[3], r[4], r[5]))
			}
		}
	}
	return -1
}

// advice reports whether a line only says what may be the reason.
func advice(t string) bool {
	return maybe.MatchString(t)
}

// onlyLowest returns the key with the lowest value if there are at least three and no other has it, else -1.
func onlyLowest(values map[int]int) int {
	best, ties := -1, 0
	for k, v := range values {
		switch {
		case best < 0 || v < values[best]:
			best, ties = k, 0
		case v == values[best]:
			ties++
		}
	}
	if len(values) < 2 || ties > 0 || len(values) == 2 {
		return -1
	}
	return best
}

// notHeard returns the only rank of the job that has not printed its number, or -1. The job has as many ranks as
// the report of a rendezvous says.
func notHeard(members []*member) int {
	heard, size := map[int]bool{}, 0
	for _, m := range members {
		heard[m.rank] = true
		for _, st := range m.streams {
			for _, t := range st.text {
				if j := joined.FindStringSubmatch(t); j != nil && logtext.Number(j[1])+1 == logtext.Number(j[2]) {
					size = logtext.Number(j[2])
				}
				if r := roster.Own(t); m.rank < 0 && r >= 0 {
					heard[r] = true
				}
			}
		}
	}
	missing := -1
	for r := range size {
		if !heard[r] && missing >= 0 {
			return -1
		} else if !heard[r] {
			missing = r
		}
	}
	return missing
}

// notReported returns the only rank that has printed its number and is not among those of which a launcher reports
// that they ended with a code, or -1.
func notReported(members []*member) int {
	heard, ended := map[int]bool{}, map[int]bool{}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report != nil && g.report.Rank >= 0 {
					ended[g.report.Rank] = true
				}
			}
			for _, t := range st.text {
				if r := roster.Own(t); m.rank < 0 && r >= 0 && message.Advance.MatchString(t) {
					heard[r] = true
				}
			}
		}
	}
	left := -1
	for r := range heard {
		if ended[r] {
			continue
		}
		if left >= 0 {
			return -1
		}
		left = r
	}
	if len(ended) < 2 {
		return -1
	}
	return left
}

// onlyMissing returns the only rank of the job that did not wait, or -1.
func onlyMissing(members []*member, waiting map[int]bool) int {
	known := map[int]bool{}
	size := 0
	for _, m := range members {
		if m.rank >= 0 {
			known[m.rank] = true
		}
		for _, st := range m.streams {
			for _, t := range st.text {
				if s := worldSize.FindStringSubmatch(t); len(t) < 500 && s != nil {
					size = max(size, logtext.Number(cmp.Or(s[1], s[2], s[3])))
				}
			}
		}
	}
	var missing []int
	for r := range max(size, len(known)) {
		if !waiting[r] && (size > 1 || known[r]) {
			missing = append(missing, r)
		}
	}
	if len(missing) != 1 || len(waiting) == 0 {
		return -1
	}
	return missing[0]
}

// blameLaggard puts the blame on the rank for which a suspect only waited.
func (s *suspect) blameLaggard(members []*member, all []*suspect) {
	named := s.sign != nil && s.rule.Groups(s.sign.text)["rank"] != ""
	if s.rule.Category == job.NetworkError && s.rule.Is(rules.Cascade) {
		s.blameLost(members)
		return
	}
	if s.rule.Category != job.CollectiveTimeout && s.rule.Category != job.Hang || named {
		return
	}
	waiting := map[int]bool{}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.rule.Category != job.CollectiveTimeout {
					continue
				}
				if m.rank >= 0 {
					waiting[m.rank] = true
				} else if r := groupRank.FindStringSubmatch(g.text); r != nil {
					waiting[logtext.Number(r[1])] = true
				}
			}
		}
	}
	rank := -1
	if s.stream != nil {
		rank = absentNear(s.stream.text, s.sign)
	}
	if rank < 0 {
		rank = laggard(members, waiting)
	}
	if rank < 0 && s.rule.Category == job.Hang {
		return
	}
	if i := slices.IndexFunc(members, func(m *member) bool { return m.rank == rank && rank >= 0 }); i >= 0 {
		s.host = members[i].host
	} else if rank != s.rank {
		s.host = ""
	}
	s.rank = rank
}

// lostPeer names a rank that another one has lost.
var lostPeer = textmatch.New(`(?i)\b(?:peer|rank|worker)[ #:=]{1,2}(\d{1,6})\b.{0,20}\b(?:closed|lost|died|disconnected|gone|went away|reset|terminated|hung up|exited)|\b(?:lost|closed|reset|broken|no) (?:\w+ ){0,3}(?:to|with|from|by) (?:peer|rank|worker)[ #:=]{1,2}(\d{1,6})\b`)

// blameLost puts the blame on the rank that a suspect has lost, if that is the only rank that
// others have lost and that has itself lost none.
func (s *suspect) blameLost(members []*member) {
	lost, losers := map[int]bool{}, map[int]bool{}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				l := lostPeer.FindStringSubmatch(g.title)
				if l == nil {
					continue
				}
				lost[logtext.Number(cmp.Or(l[1], l[2]))] = true
				if own := st.named(g); m.rank >= 0 || own >= 0 {
					losers[max(m.rank, own)] = true
				}
			}
		}
	}
	first := -1
	for r := range lost {
		if losers[r] {
			continue
		}
		if first >= 0 {
			return
		}
		first = r
	}
	if first >= 0 && first != s.rank {
		s.rank, s.host = first, ""
	}
}
