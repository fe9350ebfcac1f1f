package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/laggard"
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

// logsOf returns the logs of members.
func logsOf(members []*member) (logs []roster.Log) {
	for _, m := range members {
		for _, st := range m.streams {
			logs = append(logs, roster.Log{Rank: m.rank, Host: cmp.Or(st.host, m.host), Lines: st.lines, Text: st.text})
		}
	}
	return logs
}

// claim finds the rank of a suspect in logs that do not say to which rank each line belongs. It
// looks in the suspect's own words, in those of another rank with the same failure, at the process,
// in what launchers report, in the lines above the suspect, and at the host.
func (s *suspect) claim(members []*member, all []*suspect, records []record) {
	logs := logsOf(members)
	census := roster.Count(logs)
	defer func() { s.host = cmp.Or(s.host, hostOf(members, s.rank)) }()
	if s.stream != nil && s.stream.rank < 0 && roster.Pod(s.sign.title, false) >= 0 && roster.Pod(s.sign.title, false) == s.rank {
		s.rank = roster.Pod(s.sign.title, slices.ContainsFunc(members, (*member).hasMaster))
	}
	odd := -1
	if s.rule.Signature == "collective-mismatch" || s.rule.Signature == "nccl-version-mismatch" {
		if odd = laggard.Odd(s.likeWords(all)); odd >= 0 {
			s.rank, s.host = odd, ""
		}
	}
	for _, find := range []func() int{s.listed, s.accused, func() int { return s.recordedRank(records, census) }} {
		if r := find(); r >= 0 {
			s.rank, s.host = r, ""
			return
		}
	}
	if r := s.ofHost(census, all); r >= 0 && s.aboutHost() {
		s.rank = r
	}
	if s.stream == nil && s.record == nil {
		return
	}
	for _, find := range []func() int{
		func() int { return s.ownWords(census) },
		func() int { return s.ofSame(all) },
		func() int { return census.OfPID(s.pid) },
		func() int { return s.printedBy(census) },
		func() int { return s.ofRecord(census, all) },
		func() int { return s.fromSource() },
		func() int { return s.inTable(members) },
		s.lowestGPU,
		func() int { return s.ofEvery(members, census) },
		s.ofMaster,
		func() int { return s.podAbove(members) },
		func() int { return localRank(members, true) },
		func() int { return s.reported(members) },
		func() int { return localRank(members, false) },
		func() int { return s.behind(logs, s.crashed()) },
		s.namedAbove,
		func() int {
			if s.record == nil {
				return -1
			}
			return census.Unheard()
		},
		func() int { return s.ofHost(census, all) },
		func() int { return s.besideOthers(all, nil) },
		func() int { return laggard.Silent(logs) },
		func() int { return s.behind(logs, true) },
		func() int { return s.ofStart(members) },
		func() int {
			if s.record == nil {
				return -1
			}
			return onlyReporter(all)
		},
	} {
		if s.rank >= 0 {
			break
		}
		s.rank = find()
	}
	if odd < 0 && s.stream != nil && s.stream.rank < 0 && s.record == nil && !namesOther[s.rule.Category] && !s.rule.Is(rules.Mute) && s.sign.report == nil {
		s.lowestCopy(census)
	}
}

// listed returns the rank that a suspect says is lost or has been told to end, or -1.
func (s *suspect) listed() int {
	if s.stream == nil || s.rule.Category != job.HostLost && s.rule.Category != job.Preempted {
		return -1
	}
	if r := laggard.Listed(s.stream.text, s.sign.from, s.sign.to); r >= 0 {
		return r
	}
	for i := s.sign.from; i < min(len(s.stream.text), s.sign.to+nearRank); i++ {
		if r := laggard.Task(s.stream.text[i]); r >= 0 {
			return r
		}
		if m := podRanks.FindStringSubmatch(s.stream.text[i]); m != nil {
			return logtext.Number(m[1])
		}
	}
	return -1
}

// podAbove returns the rank of the pod that a description of Kubernetes is about, or -1.
func (s *suspect) podAbove(members []*member) int {
	if s.stream == nil || s.stream.rank >= 0 {
		return -1
	}
	for i := s.sign.at; i >= max(0, s.sign.at-describedLines); i-- {
		if m := described.FindStringSubmatch(s.stream.text[i]); m != nil {
			return roster.Pod("pod/"+cmp.Or(m[1], m[2]), slices.ContainsFunc(members, (*member).hasMaster))
		}
	}
	return -1
}

// described is the beginning of what kubectl describes.
var described = textmatch.New(`^Name: +(\S+)$|\bdescribe pods?[ /](\S+)`)

// describedLines is how long such a description is.
const describedLines = 60

// podRanks names the ranks of a pod or a host.
var podRanks = textmatch.New(`\(ranks? (\d{1,6})(?:-\d+)?\)`)

// recordedRank returns the rank of a process that a record of the same kernel names, or -1.
func (s *suspect) recordedRank(records []record, census *roster.Census) int {
	if s.record == nil {
		return -1
	}
	if r := census.OfPID(s.recordPID()); r >= 0 {
		return r
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

// accused returns the rank that a report of a slow rank or an exception of a collective save accuses, or -1.
func (s *suspect) accused() int {
	if s.stream == nil {
		return -1
	}
	if s.rule.Category == job.Straggler {
		return laggard.Slow(s.sign.text)
	}
	for i := s.sign.from; i <= s.sign.at; i++ {
		if m := elsewhere.FindStringSubmatch(s.stream.text[i]); m != nil {
			return logtext.Number(m[1])
		}
	}
	return -1
}

// elsewhere is how PyTorch marks the exception of another rank.
var elsewhere = textmatch.New(`^Traceback \(most recent call last\): \(RANK (\d{1,6})\)`)

// ofRecord returns the rank of the host that has a record, or -1.
func (s *suspect) ofRecord(census *roster.Census, all []*suspect) int {
	if s.record == nil {
		return -1
	}
	return s.ofHost(census, all)
}

// recordedPID is how the kernel names a process.
var recordedPID = textmatch.New(`\bpid[ :=]{1,2}(\d{2,8})\b|\btask \S+?:(\d{2,8}) blocked for`)

// ofMaster returns 0 for a failure to open the port on which rank 0 waits for the others, else -1.
func (s *suspect) ofMaster() int {
	if s.rule.Category == job.PortInUse && s.stream != nil && masterPort.MatchString(s.sign.text) {
		return 0
	}
	return -1
}

// masterPort is an error of the process that waits for the others.
var masterPort = textmatch.New(`(?i)server socket has failed to|TCPStore|c10d|coordinat(?:or|ion) service|MASTER_PORT`)

// ofStart returns 0 if a program could not be started several times, else -1.
func (s *suspect) ofStart(members []*member) int {
	if s.stream == nil || s.rule.Category != job.LaunchError && s.rule.Category != job.MissingLibrary {
		return -1
	}
	copies := 0
	for _, g := range s.stream.signs {
		if g.rule.Signature == s.rule.Signature && alike(g.title, s.title()) {
			copies++
		}
	}
	if copies < 2 {
		return -1
	}
	return 0
}

// onlyReporter returns the rank of all suspects if they have the same, or -1.
func onlyReporter(all []*suspect) int {
	only := -1
	for _, o := range all {
		if o.rank < 0 || o.rank == only {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = o.rank
	}
	return only
}

// hasMaster reports whether the logs name a pod of its own for rank 0.
func (m *member) hasMaster() bool {
	return slices.ContainsFunc(m.streams, func(st *stream) bool {
		return roster.Master(st.lines[0].File) || slices.ContainsFunc(st.text, roster.Master)
	})
}

// aboutHost reports whether a suspect is the failure of a host or of a part of it, which its ranks only report.
func (s *suspect) aboutHost() bool {
	return s.rule.Category == job.HostLost || s.rule.Category == job.Preempted && s.rule.Is(rules.Verdict)
}

// ofHost returns the rank of the host that a suspect is about, or -1: the one that shows a failure, or else the lowest.
func (s *suspect) ofHost(census *roster.Census, all []*suspect) int {
	hosts := []string{s.names["host"], s.host}
	if s.record != nil {
		hosts = append(hosts, s.record.Host)
	}
	if s.stream != nil {
		hosts = append(hosts, hostWords(s.title())...)
		hosts = append(hosts, hostWords(s.stream.lines[0].File)...)
	}
	for _, h := range hosts {
		if !census.Knows(h) {
			continue
		}
		if r := s.besideOthers(all, func(r int) bool { return census.OnHost(r, h) }); r >= 0 && s.rule.Category != job.HostLost && s.rule.Category != job.CPUOOM {
			return r
		}
		return census.OfHost(h)
	}
	if s.rule.Category == job.HostLost {
		return census.OfHost(cmp.Or(s.names["host"], s.host))
	}
	return -1
}

// hostWords returns the words of a text that may be the names of hosts.
func hostWords(text string) []string {
	return strings.FieldsFunc(text[:min(len(text), 500)], func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-')
	})
}

// ownWords returns the rank that a suspect names as its own, or -1.
func (s *suspect) ownWords(census *roster.Census) int {
	if s.stream == nil {
		return -1
	}
	if r := roster.Own(s.sign.title); r >= 0 {
		return r
	}
	for i := s.sign.at; i < s.sign.to; i++ {
		if r := roster.Printed(s.stream.lines[i].Text); r >= 0 {
			return r
		}
	}
	if r := roster.Own(s.stream.lines[s.sign.from].Text); r >= 0 {
		return r
	}
	if roster.Together(s.stream.text[s.sign.at]) {
		return 0
	}
	return census.OfUnit(s.sign.title)
}

// ofSame returns the lowest rank with the same failure, or -1.
func (s *suspect) ofSame(all []*suspect) int {
	lowest := -1
	for _, o := range all {
		if o.rank >= 0 && o.rule.Signature == s.rule.Signature && !s.rule.Is(rules.Mute|rules.Cascade) && (lowest < 0 || o.rank < lowest) {
			lowest = o.rank
		}
	}
	return lowest
}

// likeWords returns the titles of the suspects with the same signature.
func (s *suspect) likeWords(all []*suspect) (titles []string) {
	for _, o := range append([]*suspect{s}, all...) {
		if o.sign != nil && o.rule.Signature == s.rule.Signature && !slices.Contains(titles, o.sign.text) {
			titles = append(titles, o.sign.text)
		}
	}
	return titles
}

// recordPID returns the process that a record or a report names.
func (s *suspect) recordPID() int {
	if s.record != nil {
		if pid := logtext.Number(s.rule.Groups(s.record.Text)["pid"]); pid > 0 {
			return pid
		}
	}
	return s.pid
}

// fromSource returns the rank that the source line of a traceback requires, as "if rank == 2: raise ..." does.
func (s *suspect) fromSource() int {
	if s.sign == nil {
		return -1
	}
	for _, f := range slices.Backward(strings.Split(s.sign.context, "\n")) {
		if m := onlyRank.FindStringSubmatch(f); m != nil {
			return logtext.Number(cmp.Or(m[1], m[2]))
		}
	}
	return -1
}

// onlyRank is a condition that holds on one rank.
var onlyRank = textmatch.New(`(?i)(?:\b|_)(?:rank|me|myid|my_?rank|proc_?id|pe)(?:\(\))? *== *["']?(\d{1,6})\b|\b(\d{1,6}) *== *(?:\w+\.)*(?:get_)?rank\b`)

// inTable returns the rank for which torchrun's table shows the error of a suspect, or -1.
func (s *suspect) inTable(members []*member) int {
	words, _, _ := strings.Cut(s.title(), "\n")
	if words = words[:min(len(words), 100)]; len(words) < 4 {
		return -1
	}
	lowest := -1
	for _, m := range members {
		for _, st := range m.streams {
			for _, f := range endreport.Table(st.text) {
				if strings.Contains(f.Text, words) && (lowest < 0 || f.Rank < lowest) {
					lowest = f.Rank
				}
			}
		}
	}
	return lowest
}

// fullGPU names the GPU whose memory was full.
var fullGPU = textmatch.New(`\bGPU (\d{1,3})\b`)

// lowestGPU returns the lowest GPU whose memory was full, if the log of all ranks of a host does not name the rank.
// There each rank has the GPU of its number. It returns -1 if that is not known.
func (s *suspect) lowestGPU() int {
	if s.rule.Category != job.GPUOOM || s.stream == nil || s.stream.rank >= 0 {
		return -1
	}
	lowest, several := -1, false
	for _, t := range s.stream.text {
		if g := fullGPU.FindStringSubmatch(t); g != nil && strings.Contains(t, "memory") {
			n := logtext.Number(g[1])
			several = several || lowest >= 0 && n != lowest
			if lowest < 0 || n < lowest {
				lowest = n
			}
		}
	}
	if lowest == 0 && !several { // a rank that sees one GPU calls it GPU 0
		return -1
	}
	return lowest
}

// moreAborted is how Open MPI says that further ranks have called MPI_Abort.
var moreAborted = textmatch.New(`\] (\d{1,6}) more process(?:es)? (?:has|have) sent help message help-mpi-api\.txt / mpi-abort`)

// ofEvery returns 0 if every rank has failed in the same way, else -1.
func (s *suspect) ofEvery(members []*member, census *roster.Census) int {
	if s.stream == nil {
		return -1
	}
	copies, printers := 0, map[int]bool{}
	for _, m := range members {
		for _, st := range m.streams {
			seen := -1 // the last sign with a copy: an exception and what caused it may say the same
			for i, t := range st.text {
				if a := moreAborted.FindStringSubmatch(t); a != nil && s.rule.Signature != "mpi-abort" {
					copies += logtext.Number(a[1])
				}
				pid := roster.Printer(st.lines[i].Text)
				if t != s.stream.text[s.sign.at] && (pid == 0 || !alike(t, s.stream.text[s.sign.at])) {
					continue
				}
				within := slices.IndexFunc(st.signs, func(g *sign) bool { return g.from <= i && i < g.to })
				if !printers[pid] && (within < 0 || within != seen) {
					copies++
				}
				seen, printers[pid] = within, pid > 0
			}
		}
	}
	if copies > 1 && copies >= census.Heard() {
		return 0
	}
	return -1
}

// longTitle is how many bytes a line has that is too long to be compared with others.
const longTitle = 1000

// localRank returns the rank of which torchrun reports only its number on its host, if the logs show the number
// of ranks before it, or -1. restarted is true if torchrun must have reported several failures.
func localRank(members []*member, restarted bool) int {
	var t roster.Torchrun
	for _, m := range members {
		for _, st := range m.streams {
			var alone roster.Torchrun
			for _, text := range st.text {
				t.Read(text)
				alone.Read(text)
			}
			if restarted && alone.Restarted() {
				return alone.Rank()
			}
		}
	}
	if restarted {
		return -1
	}
	return t.Rank()
}

// printedBy returns the rank of the process that has printed a sign, or another sign with the same signature,
// or -1.
func (s *suspect) printedBy(census *roster.Census) int {
	if s.stream == nil {
		return -1
	}
	for _, o := range append([]*sign{s.sign}, s.stream.signs...) {
		if o.rule.Signature != s.sign.rule.Signature {
			continue
		}
		for i := o.at; i >= max(0, o.from-1); i-- { // the innermost exception comes last, after Ray's words
			if r := census.OfPID(roster.Printer(s.stream.lines[i].Text)); r >= 0 {
				return r
			}
		}
	}
	return -1
}

// headRank is how GROMACS names the rank above its message.
var headRank = textmatch.New(`^MPI rank: +(\d{1,6}) `)

// lowestCopy sets the rank to the lowest of those that print the same sign in the same log.
func (s *suspect) lowestCopy(census *roster.Census) {
	st := s.stream
	for i, t := range st.text {
		if s.rank <= 0 || len(t) >= longTitle || !alike(t, st.text[s.sign.at]) {
			continue
		}
		r := roster.Printed(st.lines[i].Text)
		if r < 0 {
			r = census.OfPID(roster.Printer(st.lines[i].Text))
		}
		for k := i - 1; r < 0 && k >= max(0, i-nearRank); k-- {
			if m := headRank.FindStringSubmatch(st.text[k]); m != nil {
				r = logtext.Number(m[1])
			}
		}
		if r >= 0 {
			s.rank = min(s.rank, r)
		}
	}
}

// behind returns the rank that has counted the fewest steps, or -1. The rank that failed no longer counts.
func (s *suspect) behind(logs []roster.Log, sure bool) int {
	if s.stream == nil || !sure {
		return -1
	}
	return laggard.FewestSteps(logs, 1)
}

// besideOthers returns the lowest of the ranks that failed by themselves, for a suspect whose log belongs to no rank.
// If of is not nil, it tells which ranks may be meant; one that only lost others counts then, too.
func (s *suspect) besideOthers(all []*suspect, of func(rank int) bool) int {
	var best *suspect
	for _, o := range all {
		if o.rank < 0 || of == nil && o.tier() > tierGeneric || of != nil && !of(o.rank) {
			continue
		}
		if best == nil || o.tier() < best.tier() || o.tier() == best.tier() && o.rank < best.rank {
			best = o
		}
	}
	if best == nil {
		return -1
	}
	return best.rank
}

// hostOf returns the host of a rank, as its logs or a launcher's report name it. It is empty if they do not.
func hostOf(members []*member, rank int) string {
	if rank < 0 {
		return ""
	}
	host := ""
	for _, m := range members {
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

// namedAbove returns the rank that a sign or a line above it names as its own, or -1.
func (s *suspect) namedAbove() int {
	if s.stream == nil {
		return -1
	}
	return s.stream.named(s.sign)
}

// named returns the rank that the last lines of a sign, or lines beside it, name as its own, or -1.
func (s *stream) named(g *sign) int {
	for i := g.to - 1; i >= max(0, g.from-nearRank); i-- {
		t := s.text[i]
		if i >= g.from && i < g.at && !strings.HasPrefix(t, "-- ") { // other ranks may have printed lines between
			continue
		}
		if i < g.from && (pytrace.FrameLine.MatchString(t) || message.Advance.MatchString(t) && !trouble.MatchString(t)) {
			continue
		}
		if r := roster.Own(t); r >= 0 {
			return r
		}
	}
	for i := g.to; i < min(len(s.text), g.to+nearRank); i++ {
		if t := s.text[i]; trouble.MatchString(t) {
			if r := roster.Own(t); r >= 0 {
				return r
			}
		}
	}
	return -1
}

// trouble is a word of a line that tells of a failure.
var trouble = textmatch.New(`(?i)\b(?:nan|error|critical|fatal|fail\w*|abort\w*|diverg\w*)\b`)
