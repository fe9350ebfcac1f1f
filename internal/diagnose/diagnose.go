// Package diagnose finds the cause of an attempt that did not end well. It works with the exits of the ranks
// and with lines of evidence: what ranks and kernels have printed, and what agents have recorded. Its
// subpackages read the lines and have the rules.
package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/activity"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/flightrecord"
	"github.com/gangrun/gangrun/internal/job"
)

// Diagnose finds the cause of an attempt that did not end well. The cause is the first failure that
// is not a consequence of another one. If there was no failure, or if Diagnose finds no cause,
// Category is empty and Text says so.
func Diagnose(e job.Evidence) job.Cause { return With(rules.Standard(), e) }

// With is like Diagnose, but uses the rules of book.
func With(book *rule.Book, e job.Evidence) job.Cause {
	if len(e.Lines) == 0 {
		e.Lines = e.Outcome.Lines
	}
	if rule, ok := rules.Endings[e.Ended]; ok {
		if up := e.Outcome.Wireup; up != nil && len(up.In) < e.Ranks && len(up.In)+len(up.Silent) > 0 {
			rule.Text += "; " + up.Words(e.Ranks)
		}
		lines := []job.Line{}
		if e.Ended == job.EndedTimeLimit || e.Ended == job.EndedBatchLimit {
			lines = append(lines, activity.Add(&rule, e.Activity)...)
		}
		return job.Cause{Category: rule.Category, Signature: rule.Signature, Rank: -1, Confidence: 1, Text: rule.Text, Hint: rule.Hint, Retry: rule.Category.Action(), Evidence: lines}
	}
	members, records := sortOut(e, book)
	live := len(e.Outcome.Exits)+len(e.Outcome.Unreaped) > 0
	var all []*suspect
	for _, m := range members {
		all = append(all, m.suspects(live)...)
	}
	if live {
		all = slices.DeleteFunc(all, func(s *suspect) bool { return s.retold(members) })
		explain(all, records, members)
	} else if !slices.ContainsFunc(all, func(s *suspect) bool { return !s.wentOn() }) {
		all = nil // no suspect has ended the job
	}
	found := flight{flightrecord.Read(e.Lines)}
	if len(all) == 0 && !live && !done(members) {
		all = unexplained(records)
	}
	if len(all) == 0 && !live && !done(members) {
		all = found.suspects()
	}
	if len(all) == 0 {
		return activity.Nothing(e, live)
	}
	s := choose(all)
	if !live {
		if s = chooseFromLogs(all); s != nil {
			explain([]*suspect{s}, records, members)
		}
		if s == nil || s.record == nil && s.tier() >= tierPeer {
			s = cmp.Or(recorded(records, members), s)
		}
	}
	if s == nil {
		return activity.Nothing(e, live)
	}
	if live {
		s = leaver(firstToEnd(s, all), members)
	} else {
		s = s.spoken(members)
	}
	s.tooFew(e)
	if live {
		s.adopt(members)
	} else {
		logs := logsOf(members)
		census := roster.Count(logs)
		s.claim(members, all, records, logs, census)
		s.blameLaggard(members, logs, census)
	}
	if !found.about(s) {
		return s.cause(e, all)
	}
	found.blame(s)
	e.Ranks = 0 // the flight records show better than e which ranks did not wait
	c := s.cause(e, all)
	found.Explain(&c)
	return c
}

// sortOut returns the evidence of each rank, and the records of the hosts.
func sortOut(e job.Evidence, book *rule.Book) ([]*member, []record) {
	byRank := map[int]*member{}
	get := func(rank int) *member {
		m := byRank[rank]
		if m == nil {
			m = &member{rank: rank, order: math.MaxInt}
			byRank[rank] = m
		}
		return m
	}
	for i := range e.Outcome.Exits {
		x := &e.Outcome.Exits[i]
		if m := get(x.Rank); m.exit == nil {
			m.exit, m.host, m.order = x, x.Host, i
		}
	}
	for _, u := range e.Outcome.Unreaped {
		if m := get(u.Rank); m.exit == nil {
			m.host, m.order = u.Host, len(e.Outcome.Exits)
			m.exit = &job.Exit{Rank: u.Rank, Host: u.Host, Status: job.Lost, Text: "nobody saw it end, and it may still be running"}
		}
	}
	afterwards := len(byRank) == 0 // only logs are known; records of hosts may be among the output
	var records []record
	all := streams(e.Lines, book)
	if afterwards {
		introduce(all)
		shift(all)
		asOne(all)
	}
	byFile := map[string][]*stream{}
	for _, st := range all {
		if st.lines[0].Line > 0 {
			byFile[st.lines[0].File] = append(byFile[st.lines[0].File], st)
		}
	}
	for _, st := range all {
		if i := slices.IndexFunc(all, func(o *stream) bool { return o.rank < 0 && o.lines[0].File == st.lines[0].File }); st.rank >= 0 && i >= 0 {
			st.common = all[i]
		}
		st.beside = byFile[st.lines[0].File]
		st.scan(afterwards || st.records())
		st.mixed = st.rank < 0 && !st.records() && (st.ranksOf() != nil || outlook.Mixes(st.text))
		for _, g := range st.Kernel {
			if outlook.Back(g.Text, st.text[g.To:]) {
				continue
			}
			records = append(records, newRecord(st, g))
		}
		if st.lines[0].Source == job.SourceKernel && !slices.ContainsFunc(st.Signs, func(g *sign.Sign) bool { return g.Rule.Is(rule.Verdict) && g.Rule.Category != job.CPUOOM }) {
			continue
		}
		m := get(max(st.rank, -1))
		if m.rank >= 0 {
			m.host = cmp.Or(m.host, st.host)
		}
		for _, o := range m.streams {
			st.partners, o.partners = append(st.partners, o), append(o.partners, st)
		}
		m.streams = append(m.streams, st)
	}
	members := make([]*member, 0, len(byRank))
	for _, m := range byRank {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.rank, b.rank))
	})
	return members, records
}

// introduce assigns ranks to the logs without a rank whose programs say which rank they are.
func introduce(all []*stream) {
	var logs []roster.Unranked
	for _, st := range all {
		if st.rank >= 0 {
			return
		}
		logs = append(logs, roster.Unranked{Text: st.text, Source: st.lines[0].Source, Records: st.records(), Mixed: len(all) == 1 && outlook.Mixes(st.text)})
	}
	for i, rank := range roster.Introduce(logs) {
		all[i].rank = max(all[i].rank, rank)
	}
}

// shift adds 1 to the rank of each numbered worker if a worker says that its rank is its number plus 1. In such a job,
// rank 0 has a name of its own.
func shift(all []*stream) {
	worker := func(st *stream) bool { return st.rank >= 0 && roster.Worker(st.lines[0].File) }
	if !slices.ContainsFunc(all, func(st *stream) bool { return worker(st) && roster.Introduced(st.text) == st.rank+1 }) {
		return
	}
	for _, st := range all {
		if worker(st) && roster.Introduced(st.text) != st.rank {
			st.rank++
		}
	}
}

// adopt takes the rank from a launcher's report if the suspect has no rank, for instance because the log of all ranks
// does not show which rank raised an exception.
func (s *suspect) adopt(members []*member) {
	if i := slices.IndexFunc(members, func(m *member) bool { return m.rank == s.rank && s.rank >= 0 }); i >= 0 {
		s.host = cmp.Or(s.host, members[i].host)
	}
	if s.rank >= 0 || s.rule.Is(rule.Cascade) {
		return
	}
	for _, m := range members {
		for _, st := range m.streams {
			for _, g := range st.Signs {
				if g.Rule.Signature == s.rule.Signature || g.Rule.Is(rule.Mute) && s.sign != nil && s.sign.Class == rule.Message {
					if names := g.Rule.Groups(g.Text); names["rank"] != "" {
						s.rank, s.host = logtext.Number(names["rank"]), cmp.Or(s.host, names["host"])
						return
					}
				}
				if g.Report != nil && g.Report.Rank >= 0 && (s.rank < 0 || g.Discount == 0) {
					s.rank, s.host = g.Report.Rank, cmp.Or(s.host, g.Report.Host)
				}
			}
		}
	}
}

// cause returns the Cause for a suspect.
func (s *suspect) cause(e job.Evidence, all []*suspect) job.Cause {
	names := s.names
	if s.sign != nil {
		names["title"] = cmp.Or(strings.TrimRight(logtext.Short(s.sign.Title, 300), ": "), s.sign.Class, rules.Means(s.rule))
	}
	names["host"] = cmp.Or(names["host"], s.host)
	quoted := ""
	if s.rule.Is(rule.Mute) && s.member != nil && s.signal == 0 {
		quoted = s.lastWords()
	}
	if quoted == "" {
		names["silence"] = ", and nothing that it printed tells why"
	}
	text := rule.Expand(s.rule.Text, names)
	if text == "" {
		text = names["title"]
		if s.sign != nil && s.sign.Where != "" {
			text += " (" + logtext.Short(s.sign.Where, 100) + ")"
		}
	}
	if s.record != nil {
		text = logtext.Short(rule.Expand(s.rule.Text, map[string]string{"title": logtext.Short(s.record.Text, 200)}), 400)
	}
	if quoted != "" {
		text += fmt.Sprintf("; its last words are %q", quoted)
	}
	if s.rule.Signature == "exit-code" {
		text += "; its output is in " + s.logs()
	}
	c := job.Cause{
		Category: s.rule.Category, Signature: s.rule.Signature, Rank: s.rank, Host: s.host,
		Confidence: math.Round(min(max(s.confidence, 0.1), 1)*100) / 100,
		Text:       s.who() + text + absent(s, e, all),
		Hint:       rule.Expand(s.rule.Hint, logtext.Shortened(names)),
		Retry:      cmp.Or(s.rule.Retry, s.rule.Category.Action()),
		Artefact:   logtext.Short(names["artefact"], 500),
		Evidence:   s.evidence(),
		After:      s.after(),
	}
	c.Also, c.Cascades = s.others(all)
	if c.Artefact == "" && s.rule.Category == job.HostLost {
		c.Artefact = s.host
	}
	return c
}

// who returns the beginning of the text of a cause: the rank and the host that the cause is about.
func (s *suspect) who() string {
	switch {
	case s.rank >= 0 && s.host != "":
		return fmt.Sprintf("rank %d on %s: ", s.rank, s.host)
	case s.rank >= 0:
		return fmt.Sprintf("rank %d: ", s.rank)
	case s.host != "":
		return s.host + ": "
	case s.stream != nil && s.stream.lines[0].File != "":
		return logtext.Short(path.Base(s.stream.lines[0].File), 100) + ": "
	}
	return ""
}

// logs returns the names of the files with the rank's output.
func (s *suspect) logs() string {
	var files []string
	if s.member != nil {
		for _, st := range s.member.streams {
			if f := st.lines[0].File; f != "" && !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	if len(files) == 0 {
		return job.LogName(max(s.rank, 0), "err") + " and " + job.LogName(max(s.rank, 0), "out")
	}
	return strings.Join(files, " and ")
}

// absent names the ranks that did not wait, if the cause is that other ranks waited for them until a timeout.
func absent(s *suspect, e job.Evidence, all []*suspect) string {
	if s.rule.Category != job.CollectiveTimeout || e.Ranks < 2 {
		return ""
	}
	waited := map[int]bool{}
	for _, o := range all {
		if o.rule.Category == job.CollectiveTimeout {
			waited[o.rank] = true
		}
	}
	return activity.Absent(waited, e.Ranks)
}
