package diagnose

import (
	"cmp"
	"slices"

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

// claim finds the rank of a suspect in a log that does not say whose each line is, in what launchers report.
func (s *suspect) claim(members []*member) {
	if s.rank >= 0 || s.stream == nil && s.record == nil {
		return
	}
	if s.pid > 0 {
		s.rank = rankOfPID(members, s.pid)
	}
	if s.rank < 0 {
		s.rank = reported(members, s)
	}
}

// named returns the rank that a sign names as its own, or -1.
func (s *stream) named(g *sign) int {
	for i := g.to - 1; i >= max(0, g.from-nearRank); i-- {
		t := s.text[i]
		if len(t) > 500 || i < g.from && (pytrace.FrameLine.MatchString(t) || message.Advance.MatchString(t)) {
			continue
		}
		if m := ownRank.FindStringSubmatch(t); m != nil && !othersRank.MatchString(t) {
			return logtext.Number(cmp.Or(m[1], m[2], m[3], m[4], m[5], m[6], m[7]))
		}
	}
	return -1
}

// rankOfPID returns the rank of a process, or -1.
func rankOfPID(members []*member, pid int) int {
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report != nil && g.report.pid == pid && g.report.rank >= 0 {
					return g.report.rank
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

// reported returns the rank that launchers report as the one which failed, or -1 if they report none or several.
// A report fits only a suspect that ended in the way reported.
func reported(members []*member, s *suspect) int {
	var aborted, ended []int
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report == nil {
					if r, ok := g.rule.Groups(g.text)["rank"]; ok && g.rule.Category == job.MPIError && g.rule.Is(rules.Mute) {
						aborted = append(aborted, logtext.Number(r))
					}
					continue
				}
				if r := g.report; r.rank >= 0 && r.signal != 15 && (r.signal == 0 || r.signal != 9 || s.signal == 9 || s.rule.Category == job.CPUOOM) {
					ended = append(ended, r.rank)
				}
			}
		}
	}
	for _, ranks := range [][]int{aborted, ended} {
		slices.Sort(ranks)
		if ranks = slices.Compact(ranks); len(ranks) == 1 {
			return ranks[0]
		}
	}
	return -1
}
