package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// nearRank is how many lines above a sign may name the rank whose sign it is.
const nearRank = 3

// claim finds the rank of a suspect in logs that do not say to which rank each line belongs. It
// looks in the suspect's own words, in those of another rank with the same failure, at the process,
// in what launchers report, and in the lines above the suspect.
func (s *suspect) claim(members []*member, all []*suspect) {
	defer func() { s.host = cmp.Or(s.host, hostOf(members, s.rank)) }()
	if s.stream != nil && s.stream.rank < 0 && roster.Pod(s.sign.title, false) >= 0 && roster.Pod(s.sign.title, false) == s.rank {
		s.rank = roster.Pod(s.sign.title, slices.ContainsFunc(members, (*member).hasMaster))
	}
	if s.rank >= 0 || s.stream == nil && s.record == nil {
		return
	}
	if s.stream != nil {
		s.rank = roster.Own(s.sign.title)
	}
	for _, o := range all {
		if s.rank < 0 && o.rank >= 0 && o.rule.Signature == s.rule.Signature && !s.rule.Is(rules.Mute|rules.Cascade) {
			s.rank = o.rank
		}
	}
	if rank, ok := ranksByPID(members)[s.pid]; ok && s.rank < 0 && s.pid > 0 {
		s.rank = rank
	}
	if s.rank < 0 && s.stream != nil {
		s.rank = s.stream.printedBy(s.sign, members)
	}
	if s.rank < 0 && s.rule.Category == job.GPUOOM {
		s.rank = lowestGPU(all, s)
	}
	if s.rank < 0 {
		s.rank = s.reported(members)
	}
	if s.rank < 0 && s.everyRank() {
		s.rank = 0
	}
	if s.rank < 0 {
		s.rank = localRank(members)
	}
	if s.rank < 0 && s.crashed() && s.stream != nil { // the rank that crashed no longer counts
		s.rank = fewestSteps(members, 1)
	}
	if s.rank < 0 && s.stream != nil {
		s.rank = s.stream.named(s.sign)
	}
}

// hasMaster reports whether the logs name a pod of its own for rank 0.
func (m *member) hasMaster() bool {
	return slices.ContainsFunc(m.streams, func(st *stream) bool {
		return roster.Master(st.lines[0].File) || slices.ContainsFunc(st.text, roster.Master)
	})
}

// fullGPU names the GPU whose memory was full.
var fullGPU = textmatch.New(`\bGPU (\d{1,3})\b`)

// lowestGPU returns the lowest GPU whose memory was full, if several were in the log of all ranks of a host. There
// each rank has the GPU of its number.
func lowestGPU(all []*suspect, of *suspect) int {
	seen := map[int]bool{}
	for _, s := range all {
		if g := fullGPU.FindStringSubmatch(s.title()); g != nil && s.rule.Signature == of.rule.Signature {
			seen[logtext.Number(g[1])] = true
		}
	}
	if len(seen) < 2 {
		return -1
	}
	return slices.Min(slices.Collect(maps.Keys(seen)))
}

// everyRank reports whether a program could not be started and its log says so several times: then no rank has been.
func (s *suspect) everyRank() bool {
	if s.stream == nil || s.rule.Category != job.LaunchError && s.rule.Category != job.MissingLibrary {
		return false
	}
	same := 0
	for _, g := range s.stream.signs {
		if g.rule.Signature == s.rule.Signature && logtext.Alike(g.title, s.title()) {
			same++
		}
	}
	return same > 1
}

// localRank returns the rank of which torchrun reports only its number on its host, if the logs show the number
// of ranks before it, or -1.
func localRank(members []*member) int {
	var t roster.Torchrun
	for _, m := range members {
		for _, st := range m.streams {
			for _, text := range st.text {
				t.Read(text)
			}
		}
	}
	return t.Rank()
}

// printedBy returns the rank of the process that has printed a sign, or another sign with the same signature,
// or -1.
func (s *stream) printedBy(g *sign, members []*member) int {
	ranks := ranksByPID(members)
	for _, o := range append([]*sign{g}, s.signs...) {
		if o.rule.Signature != g.rule.Signature {
			continue
		}
		for i := o.at; i >= max(0, o.from-1); i-- { // the innermost exception comes last, after Ray's words
			pid := roster.Printer(s.lines[i].Text)
			if pid == 0 {
				continue
			}
			if r, ok := ranks[pid]; ok {
				return r
			}
		}
	}
	return -1
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

// named returns the rank that a sign or a line above it names as its own, or -1.
func (s *stream) named(g *sign) int {
	for i := g.to - 1; i >= max(0, g.from-nearRank); i-- {
		t := s.text[i]
		if i < g.from && (pytrace.FrameLine.MatchString(t) || message.Advance.MatchString(t)) {
			continue
		}
		if r := roster.Own(t); r >= 0 {
			return r
		}
	}
	return -1
}

// ranksByPID returns the ranks of the processes that reports, lines or the logs of ranks name. Of several ranks for a
// process, the first counts.
func ranksByPID(members []*member) map[int]int {
	ranks := map[int]int{}
	add := func(pid, rank int) {
		if _, ok := ranks[pid]; !ok {
			ranks[pid] = rank
		}
	}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.signs {
				if g.report != nil && g.report.Rank >= 0 {
					add(g.report.PID, g.report.Rank)
				}
			}
			for _, l := range st.lines {
				if pid, rank, ok := roster.Process(l.Text); ok {
					add(pid, rank)
				}
				if m.rank >= 0 {
					add(roster.Printer(l.Text), m.rank)
				}
			}
		}
	}
	return ranks
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
