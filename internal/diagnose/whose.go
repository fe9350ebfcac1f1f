package diagnose

import (
	"cmp"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// ownRank is how a program names its own rank in a message.
	ownRank = textmatch.New(`(?i)\b(?:global[_ ]?)?rank[ =:#_-]{0,3}(\d{1,6})\b|^[\w.-]*\[(\d{1,6})\]:? |\[rank ?(\d{1,6})\]|\bon (?:mpi )?(?:process|proc|task|PE)[ #:=]*(\d{1,6})\b|\bProcess (\d{1,6}) terminated\b|\bprocess (\d{1,6}) terminated with\b|\bworker (\d{1,6}):`)
	// othersRank is how it names another one.
	othersRank = textmatch.New(`(?i)\b(?:to|from|with|by|lost|waiting for|peer|remote) rank`)
	pidThen    = textmatch.New(`(?i)\bpid[ =:]{0,3}(\d{2,8})\b.{0,60}?\brank[ =:#]{0,3}(\d{1,6})\b`)
	rankThen   = textmatch.New(`(?i)\brank[ =:#]{0,3}(\d{1,6})\b.{0,60}?\bpid[ =:]{0,3}(\d{2,8})\b`)
	ncclRank   = textmatch.New(`^\S+?:(\d{2,8}):\d+ \[\d+\] NCCL INFO .*\brank (\d{1,6}) nranks`)
)

// nearRank is how many lines above a sign may name the rank whose sign it is.
const nearRank = 3

// claim finds the rank of a suspect in logs that do not say to which rank each line belongs. It
// looks in the suspect's own words, in those of another rank with the same failure, at the process,
// in what launchers report, and in the lines above the suspect.
func (s *suspect) claim(members []*member, all []*suspect) {
	defer func() { s.host = cmp.Or(s.host, hostOf(members, s.rank)) }()
	if s.rank >= 0 || s.stream == nil && s.record == nil {
		return
	}
	if s.stream != nil {
		s.rank = ownIn(s.sign.title)
	}
	for _, o := range all {
		if s.rank < 0 && o.rank >= 0 && o.rule.Signature == s.rule.Signature && !s.rule.Is(rules.Mute|rules.Cascade) {
			s.rank = o.rank
		}
	}
	if s.rank < 0 && s.pid > 0 {
		s.rank = rankOfPID(members, s.pid)
	}
	if s.rank < 0 {
		s.rank = s.reported(members)
	}
	if s.rank < 0 && s.stream != nil {
		s.rank = s.stream.named(s.sign)
	}
}

// hostOf returns the host of a rank, as its logs or a launcher's report name it. It is empty if they do not.
func hostOf(members []*member, rank int) (host string) {
	for _, m := range members {
		if rank < 0 {
			break
		}
		if m.rank == rank {
			host = cmp.Or(host, m.host)
		}
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report != nil && g.report.Rank == rank {
					host = cmp.Or(host, g.report.Host)
				}
				if names := g.rule.Groups(g.text); names["rank"] != "" && logtext.Number(names["rank"]) == rank {
					host = cmp.Or(host, names["host"])
				}
			}
		}
	}
	return host
}

// ownIn returns the rank that a line names as that of its program, or -1.
func ownIn(t string) int {
	if len(t) > 500 || othersRank.MatchString(t) {
		return -1
	}
	m := ownRank.FindStringSubmatch(t)
	if m == nil {
		return -1
	}
	return logtext.Number(cmp.Or(m[1], m[2], m[3], m[4], m[5], m[6], m[7]))
}

// named returns the rank that a sign or a line above it names as its own, or -1.
func (s *stream) named(g *sign) int {
	for i := g.to - 1; i >= max(0, g.from-nearRank); i-- {
		t := s.text[i]
		if i < g.from && (pytrace.FrameLine.MatchString(t) || message.Advance.MatchString(t)) {
			continue
		}
		if r := ownIn(t); r >= 0 {
			return r
		}
	}
	return -1
}

// rankOfPID returns the rank of a process, or -1.
func rankOfPID(members []*member, pid int) int {
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report != nil && g.report.PID == pid && g.report.Rank >= 0 {
					return g.report.Rank
				}
			}
			for _, t := range st.text {
				if len(t) > 500 {
					continue
				}
				if p := pidThen.FindStringSubmatch(t); p != nil && logtext.Number(p[1]) == pid {
					return logtext.Number(p[2])
				}
				if p := rankThen.FindStringSubmatch(t); p != nil && logtext.Number(p[2]) == pid {
					return logtext.Number(p[1])
				}
				if p := ncclRank.FindStringSubmatch(t); p != nil && logtext.Number(p[1]) == pid {
					return logtext.Number(p[2])
				}
			}
		}
	}
	return -1
}

var (
	abortedBy = textmatch.New(`MPI_ABORT was (?:invoked|called) (?:on|by) rank (\d+)|[Aa]pplication called MPI_Abort\([^)]*\) - process (\d+)|Abort\(-?\d+\) on node \d+ \(rank (\d+) in comm`)
	// codeOf is how a launcher names a rank that ended with a code.
	codeOf = textmatch.New(`Process name: \[\S+,(\d+)\]`)
)

// reported returns the rank that, according to launchers, failed in the way of s. It returns -1 if
// launchers name no rank or several.
func (s *suspect) reported(members []*member) int {
	var aborted, ended, first []int
	for _, m := range members {
		for _, st := range m.streams {
			for _, t := range st.text {
				if a := abortedBy.FindStringSubmatch(t); len(t) < 500 && a != nil {
					aborted = append(aborted, logtext.Number(cmp.Or(a[1], a[2], a[3])))
				}
				if c := codeOf.FindStringSubmatch(t); c != nil {
					ended = append(ended, logtext.Number(c[1]))
				}
			}
			for _, g := range st.signs {
				if g.report == nil || g.report.Rank < 0 || !s.fits(g.report) {
					continue
				}
				if ended = append(ended, g.report.Rank); g.discount == 0 {
					first = append(first, g.report.Rank)
				}
			}
		}
	}
	for _, ranks := range [][]int{aborted, ended, first} {
		slices.Sort(ranks)
		if ranks = slices.Compact(ranks); len(ranks) == 1 {
			return ranks[0]
		}
	}
	return -1
}

// fits reports whether a launcher's report of an end can be about a suspect: an abort ends by SIGABRT, an
// exception with a code.
func (s *suspect) fits(r *endreport.Report) bool {
	switch {
	case s.signal != 0:
		return r.Signal == s.signal
	case s.rule.Category == job.InvalidMemoryAccess:
		return r.Signal == 11 || r.Signal == 7 || r.Signal == 6
	case s.rule.Category == job.CoreDump, s.rule.Category == job.Assertion && s.sign.class == "":
		return r.Signal == 6 || r.Signal == 4 || r.Signal == 8
	case s.rule.Category == job.Killed, s.rule.Category == job.CPUOOM:
		return r.Signal == 9 || r.Code > 0
	}
	return r.Code > 0 || r.Signal == 6
}
