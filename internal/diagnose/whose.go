package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/culprit"
	"github.com/gangrun/gangrun/internal/diagnose/laggard"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// nearRank is how many lines above a sign may name the rank that printed the sign.
const nearRank = 3

// How many lines of the log of one rank are kept to compare ranks: the first and the last lines.
const (
	comparedFirst = 150
	comparedLast  = 350
	comparedAll   = 64 // with more ranks than that, fewer lines of each are kept
)

// fewest is the least number of first lines, and of last lines, that are kept.
const fewest = 50

// logsOf returns the logs of members. It leaves out the middle of a long log of one rank.
func logsOf(members []*member) (logs []roster.Log) {
	first, last := comparedFirst, comparedLast
	if n := len(members); n > comparedAll {
		first, last = max(first*comparedAll/n, fewest), max(last*comparedAll/n, fewest)
	}
	for _, m := range members {
		for _, st := range m.streams {
			l := roster.Log{Rank: m.rank, Host: cmp.Or(st.host, m.host), Lines: st.lines, Text: st.text, Lanes: st.ranksOf()}
			if n := len(l.Text); m.rank >= 0 && n > first+last {
				l.Lines = append(l.Lines[:first:first], l.Lines[n-last:]...)
				l.Text = append(l.Text[:first:first], l.Text[n-last:]...)
			}
			logs = append(logs, l)
		}
	}
	return logs
}

// where returns a sign together with its log.
func (s *stream) where(g *sign.Sign) culprit.Sign {
	return culprit.Sign{Log: roster.Log{Rank: s.rank, Host: s.host, Lines: s.lines, Text: s.text, Lanes: s.ranksOf()}, Title: g.Title, From: g.From, At: g.At, To: g.To}
}

// claim finds the rank of a suspect in logs whose lines do not all name their ranks. It tries, roughly from the surest
// to the least sure: the suspect's own words, other ranks with the same failure, the process, the reports of launchers,
// the lines above the suspect, and the host.
func (s *suspect) claim(members []*member, all []*suspect, records []record, logs []roster.Log, census *roster.Census) {
	master := slices.ContainsFunc(members, (*member).hasMaster)
	defer func() { s.host = cmp.Or(s.host, hostOf(members, s.rank)) }()
	if s.stream != nil && s.stream.rank < 0 && s.rank >= 0 && roster.Pod(s.sign.Title, false) == s.rank {
		s.rank = roster.Pod(s.sign.Title, master)
	}
	if culprit.WholeJob(s.rule.Category, s.rule.Signature, s.title()) {
		if strings.Contains(s.title(), "CANCELLED AT") { // its tag may be the rank whose host reports it
			s.rank = -1
		}
		return
	}
	if s.rule.Category == job.Straggler && culprit.Slow(s.title(), logs) >= 0 {
		s.rank, s.host = culprit.Slow(s.title(), logs), ""
		return
	}
	if r := s.surely(members, all, records, logs, census); r >= 0 {
		s.rank, s.host = r, ""
		return
	}
	if r := s.ofHost(census, all); r >= 0 && s.aboutHost() && roster.Pod(s.title(), master) < 0 {
		s.rank = r
	}
	if s.record != nil && s.rank >= 0 && census.Knows(s.record.Host) && !census.OnHost(s.rank, s.record.Host) {
		s.rank = -1 // the rank has only noticed the failure
	}
	var finds []func() int
	add := func(more ...func() int) { finds = append(finds, more...) }
	var g culprit.Sign
	if s.stream != nil {
		g = s.stream.where(s.sign)
		add(func() int { return g.Named(census) },
			func() int { return s.ofSame(all) },
			func() int { return census.OfPID(s.pid) },
			func() int { return g.OfPID(census) },
			func() int { return s.printedBy(census) },
			g.Marked)
	}
	if s.record != nil {
		add(func() int { return s.ofHost(census, all) },
			func() int { return s.reported(members, false) },
			census.Unheard,
			func() int { return s.besideOthers(all, nil) },
			func() int { return witness(all) },
			func() int { return onlyReporter(all) })
	} else if s.stream != nil {
		add(func() int { return culprit.Source(s.sign.Context) },
			func() int { return culprit.InTable(logs, s.sign.Title) },
			func() int { return s.fullGPU(census) },
			func() int { return culprit.LocalRank(logs, true) },
			func() int { return s.ofEvery(members, census) },
			s.ofMaster,
			func() int { return s.tagged(all) },
			func() int { return g.Pod(master) },
			func() int { return s.reported(members, true) },
			func() int { return culprit.Ended(logs, s.title()) },
			func() int { return g.Beside(0) },
			func() int { return laggard.Lost(logs) },
			func() int { return s.quiet(g, logs) },
			func() int { return s.reported(members, false) },
			func() int { return culprit.LocalRank(logs, false) },
			func() int { return laggard.Behind(logs, s.crashed()) },
			func() int { return s.ofHost(census, all) },
			func() int { return s.numbered(g, census) },
			func() int { return s.besideOthers(all, nil) },
			func() int { return laggard.Behind(logs, true) },
			func() int { return census.OfHost(g.HostAbove(census.Knows)) },
			s.ofStart,
			func() int { return g.Beside(min(len(census.All()), nearRank)) })
	}
	for _, find := range finds {
		if s.rank >= 0 {
			break
		}
		s.rank = find()
	}
	if s.stream != nil && s.stream.rank < 0 && s.record == nil && s.sign.Report == nil && !namesOther[s.rule.Category] && !s.rule.Is(rule.Mute) {
		s.rank = s.stream.where(s.sign).Lowest(s.rank, census)
	}
}

// surely returns the rank according to the surest of the ways to find it, or -1.
func (s *suspect) surely(members []*member, all []*suspect, records []record, logs []roster.Log, census *roster.Census) int {
	sure := []func() int{func() int { return s.accused(all) }, func() int { return s.ofPE(members) }, func() int { return s.recordedRank(records, census) }}
	if s.rule.Category == job.ModelDiverged {
		sure = append(sure, func() int { return culprit.FirstNaN(logs, s.title()) })
	}
	for _, find := range sure {
		if r := find(); r >= 0 {
			return r
		}
	}
	return -1
}

// hasMaster reports whether the logs name a pod that is reserved for rank 0.
func (m *member) hasMaster() bool {
	return slices.ContainsFunc(m.streams, func(st *stream) bool {
		return roster.Master(st.lines[0].File) || slices.ContainsFunc(st.text, roster.Master)
	})
}

// accused returns the rank that a suspect's words call lost, slow or different from the others, or that raised the
// exception which another rank printed. It returns -1 if there is no such rank.
func (s *suspect) accused(all []*suspect) int {
	if s.stream == nil {
		return -1
	}
	switch {
	case s.rule.Category == job.Straggler:
		return laggard.Slow(s.sign.Text)
	case s.rule.Category == job.HostLost, s.rule.Category == job.Preempted:
		return laggard.Listed(s.stream.text, s.sign.From, s.sign.To)
	case s.rule.Signature == "collective-mismatch", s.rule.Signature == "nccl-version-mismatch":
		var titles []string
		for _, o := range append([]*suspect{s}, all...) {
			if o.sign != nil && o.rule.Signature == s.rule.Signature && !slices.Contains(titles, o.sign.Text) {
				titles = append(titles, o.sign.Text)
			}
		}
		return laggard.Odd(titles)
	}
	return s.stream.where(s.sign).Elsewhere()
}

// aboutHost reports whether a suspect is the failure of a host. The ranks of that host, or others, only report it.
func (s *suspect) aboutHost() bool {
	return s.rule.Category == job.HostLost || s.rule.Category == job.Preempted && s.rule.Is(rule.Verdict)
}

// ofHost returns a rank of the host that a suspect is about, or -1: a rank that shows a failure, or else the lowest
// rank.
func (s *suspect) ofHost(census *roster.Census, all []*suspect) int {
	hosts := []string{s.failedHost(), s.names["host"], s.host}
	if strings.Contains(s.title(), "CANCELLED AT") { // the title also names the host that ran the job's script
		hosts = hosts[:1]
	}
	if s.record != nil {
		hosts = append(hosts, s.record.Host)
		hosts = append(hosts, culprit.HostWords(s.record.Text)...)
		hosts = append(hosts, culprit.HostWords(s.record.File)...)
	}
	if s.stream != nil && len(hosts) > 1 {
		hosts = append(hosts, culprit.HostWords(s.title())...)
		hosts = append(hosts, culprit.HostWords(s.stream.lines[0].File)...)
	}
	for _, h := range hosts {
		if !census.Knows(h) {
			continue
		}
		if r := s.endedOn(census, all, h); r >= 0 {
			return r
		}
		if s.rule.Category != job.HostLost && s.rule.Category != job.CPUOOM {
			if r := s.besideOthers(all, func(r int) bool { return census.OnHost(r, h) }); r >= 0 {
				return r
			}
		}
		return census.OfHost(h)
	}
	if s.rule.Category != job.HostLost {
		return -1
	}
	return census.OfHost(cmp.Or(hosts...))
}

// endedOn returns a rank of a host that failed according to a launcher, if a record of the host explains the suspect.
// It returns -1 if there is none.
func (s *suspect) endedOn(census *roster.Census, all []*suspect, host string) int {
	if s.record == nil || s.rule.Category == job.HostLost {
		return -1
	}
	for _, o := range all {
		if o.sign == nil || o.sign.Report == nil {
			continue
		}
		if r := o.sign.Report; r.Rank >= 0 && r.Signal != 15 && r.Signal != 9 && census.OnHost(r.Rank, host) {
			return r.Rank
		}
	}
	return -1
}

// failedHost returns the host that failed according to Slurm. It is empty if Slurm names none.
func (s *suspect) failedHost() string {
	if s.stream == nil || s.rule.Category != job.HostLost {
		return ""
	}
	for _, st := range append([]*stream{s.stream}, s.stream.beside...) {
		if h := culprit.FailedHost(st.text); h != "" {
			return h
		}
	}
	return ""
}

// ofSame returns the lowest rank with the same failure, or -1.
func (s *suspect) ofSame(all []*suspect) int {
	lowest := -1
	for _, o := range all {
		if o.rank >= 0 && o.rule.Signature == s.rule.Signature && !s.rule.Is(rule.Mute|rule.Cascade) && (lowest < 0 || o.rank < lowest) {
			lowest = o.rank
		}
	}
	return lowest
}

// recordedPID matches the words with which the kernel names a process.
var recordedPID = textmatch.New(`\bpid[ :=]{1,2}(\d{2,8})\b|\btask \S+?:(\d{2,8}) blocked for`)

// recordedRank returns the rank of the process that the suspect's record names, or else of a process that another
// record of the same host names. It returns -1 if there is no record or the rank is not known.
func (s *suspect) recordedRank(records []record, census *roster.Census) int {
	if s.record == nil {
		return -1
	}
	for _, pid := range []int{logtext.Number(s.rule.Groups(s.record.Text)["pid"]), s.pid} {
		if r := census.OfPID(pid); r >= 0 {
			return r
		}
	}
	for _, r := range records {
		if s.rule.Category != job.CPUOOM || r.line.Text != s.record.Text {
			continue
		}
		if rank := roster.InTasks(r.text, r.pid, census.Heard()); rank >= 0 {
			return rank
		}
	}
	for _, r := range records {
		m := recordedPID.FindStringSubmatch(r.line.Text)
		if m == nil || r.line.Host != s.record.Host {
			continue
		}
		if rank := census.OfPID(logtext.Number(cmp.Or(m[1], m[2]))); rank >= 0 {
			return rank
		}
	}
	return -1
}

// ofMaster returns 0 if the suspect failed to open the port on which rank 0 waits for the others, else -1.
func (s *suspect) ofMaster() int {
	if s.rule.Category != job.PortInUse || !culprit.MasterPort(s.sign.Text) {
		return -1
	}
	return 0
}

// numbered returns the number at the beginning of a sign, or, if the suspect is a hang, the rank that a supervisor
// found silent. It returns -1 if there is none.
func (s *suspect) numbered(g culprit.Sign, census *roster.Census) int {
	if s.rule.Category == job.Hang {
		return culprit.Hung(s.title(), census.All())
	}
	return g.Numbered()
}

// ofPE returns the rank that a launcher names, if the suspect names a PE, Charm++'s word for a part of a rank. It
// returns -1 if there is no such rank.
func (s *suspect) ofPE(members []*member) int {
	if !roster.NamesPE(s.title()) {
		return -1
	}
	return s.reported(members, true)
}

// fullGPU returns the rank with the lowest GPU whose memory was full, if the suspect is about that, or -1.
func (s *suspect) fullGPU(census *roster.Census) int {
	if s.rule.Category != job.GPUOOM || s.stream.rank >= 0 {
		return -1
	}
	gpu := culprit.LowestGPU(s.stream.text)
	if first := census.OfNode(s.host); gpu >= 0 && first > 0 {
		return first + gpu
	}
	return gpu
}
