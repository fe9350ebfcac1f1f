package diagnose

import (
	"cmp"
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/culprit"
	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/laggard"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/job"
)

// ofStart returns 0 if the suspect is that a program could not be started and the log says so several times, else -1.
func (s *suspect) ofStart() int {
	copies := 0
	for _, g := range s.stream.Signs {
		if g.Rule.Signature == s.rule.Signature && logtext.Alike(g.Title, s.title()) {
			copies++
		}
	}
	if copies > 1 && (s.rule.Category == job.LaunchError || s.rule.Category == job.MissingLibrary) {
		return 0
	}
	return -1
}

// longNumber is how many bytes longer a line may be than a line that differs from it only in numbers.
const longNumber = 16

// ofEvery returns 0 if every rank failed in the same way, else -1.
func (s *suspect) ofEvery(members []*member, census *roster.Census) int {
	words := s.stream.text[s.sign.At]
	copies, printers := map[bool]int{}, map[int]bool{} // copies: by whether the log is that of one rank
	for _, m := range members {
		for _, st := range m.streams {
			seen := -1 // the last sign that was counted: an exception and its cause may say the same
			for i, t := range st.text {
				if s.rule.Signature != "mpi-abort" {
					copies[false] += endreport.MoreAborted(t)
				}
				if t != words && (len(t) < 4 || len(t) > len(words)+longNumber || t[:4] != words[:min(4, len(words))]) {
					continue
				}
				pid := roster.Printer(st.lines[i].Text)
				within := slices.IndexFunc(st.Signs, func(g *sign.Sign) bool { return g.From <= i && i < g.To })
				same := pid > 0 || within >= 0 && st.Signs[within].At == i && st.Signs[within].Native && st.Signs[within].Rule == s.rule
				if t != words && (!same || !logtext.Alike(t, words)) {
					continue
				}
				if !printers[pid] && (within < 0 || within != seen) {
					copies[st.rank >= 0 && st.common == nil]++
				}
				seen, printers[pid] = within, pid > 0
			}
		}
	}
	if n := max(copies[false], copies[true]); n > 1 && n >= census.Heard() && (census.Heard() > 1 || s.stream.mixed) {
		return 0
	}
	return -1
}

// printedBy returns the rank of the process that printed the sign, or another sign with the same signature. It returns
// -1 if no such line names a process.
func (s *suspect) printedBy(census *roster.Census) int {
	for _, o := range append([]*sign.Sign{s.sign}, s.stream.Signs...) {
		if o.Rule.Signature != s.sign.Rule.Signature {
			continue
		}
		for i := o.At; i >= max(0, o.From-1); i-- { // the innermost exception comes last, below Ray's lines
			if r := census.OfPID(roster.Printer(s.stream.lines[i].Text)); r >= 0 {
				return r
			}
		}
	}
	return -1
}

// quiet returns the rank that printed nothing more after the sign, or else the rank that printed last before it. It
// returns -1 if the log shows no such rank, or if another rank may have caused the failure.
func (s *suspect) quiet(g culprit.Sign, logs []roster.Log) int {
	if s.tier() == tierPeer || s.tier() >= tierWait && s.rule.Signature != "connection-refused" || s.rule.Is(rule.Verdict) || s.rule.Category == job.PortInUse && g.Marked() < 0 && culprit.MasterPort(s.sign.Text) {
		return -1
	}
	if r := g.Quiet(); r >= 0 || s.rule.Is(rule.Mute) {
		return r
	}
	return cmp.Or(laggard.Silent(logs)+1, g.Speaker()+1) - 1
}

// tagged returns, for a suspect whose line has no tag, the lowest rank whose own output shows a cause of the same
// category. It returns -1 if there is none.
func (s *suspect) tagged(all []*suspect) int {
	if !s.sign.Plain {
		return -1
	}
	return s.besideOthers(slices.DeleteFunc(slices.Clone(all), func(o *suspect) bool {
		return o.tier() != tierCause || o.stream == nil || o.stream.rank < 0 || o.rule.Category != s.rule.Category
	}), nil)
}

// witness returns the rank that a line at a program's own error names, or -1. It is used if the suspect is a record.
func witness(all []*suspect) int {
	for _, o := range all {
		if o.stream == nil || o.tier() > tierGeneric {
			continue
		}
		if r := o.stream.where(o.sign).Beside(nearRank); r >= 0 {
			return r
		}
	}
	return -1
}

// besideOthers returns the lowest of the ranks that failed by themselves, or -1. It is used if the suspect's log
// belongs to no rank. If of is not nil, only ranks for which it returns true count, even if they only lost other ranks.
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

// onlyReporter returns the rank of the suspects if all that have a rank have the same one, else -1.
func onlyReporter(all []*suspect) int {
	only := -1
	for _, o := range all {
		if o.rank >= 0 && only >= 0 && o.rank != only {
			return -1
		}
		only = max(only, o.rank)
	}
	return only
}

// hostOf returns the host of a rank according to its logs or a launcher's report. It is empty if they name no host.
func hostOf(members []*member, rank int) (host string) {
	for _, m := range members {
		if rank < 0 {
			break
		}
		if m.rank == rank {
			host = cmp.Or(host, m.host)
		}
		for _, st := range m.streams {
			for _, g := range st.Signs {
				if g.Report != nil && g.Report.Rank == rank {
					host = cmp.Or(host, g.Report.Host)
				}
				if names := g.Rule.Groups(g.Text); names["rank"] != "" && logtext.Number(names["rank"]) == rank {
					host = cmp.Or(host, names["host"])
				}
			}
		}
	}
	return host
}
