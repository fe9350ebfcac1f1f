package logtext

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/job"
)

// tag is a form in which launchers mark the lines of a rank.
type tag struct {
	line *textmatch.Pattern // groups rank, and host and stream where it has them
	// sure is true if one line is proof enough. Otherwise nearly all lines of a log must be
	// marked so.
	sure bool
}

// mpirunTag is that of mpirun, also with --timestamp-output, and of prterun.
const mpirunTag = `^(?:\w{3} \w{3} +\d+ [\d:]{8} \d{4})?\[(?:[\w.-]+@)?\d+,(?P<rank>\d+)\](?:\[(?P<host>[\w.-]+):\d+\])?<(?P<stream>stdout|stderr|stddiag)>: ?`

// LocalRanks is added to the number of a rank on its host, if the tag of a line has only that
// number, as in tags of torchrun.
const LocalRanks = 1 << 20

// innerTag is a tag that mpirun writes within a line which the program wrote in parts.
var innerTag = textmatch.New(`(?:\w{3} \w{3} +\d+ [\d:]{8} \d{4})?\[(?:[\w.-]+@)?\d+,\d+\](?:\[[\w.-]+:\d+\])?<(?:stdout|stderr|stddiag)>:`)

var tags = []tag{
	{textmatch.New(mpirunTag), true},
	{textmatch.New(`^\[default(?P<local>\d+)\]: ?`), true},                      // torchrun
	{textmatch.New(`^\[rank(?P<rank>\d+)\]: ?`), true},                          // torch
	{textmatch.New(`^\[(?P<rank>\d+) (?P<host>[A-Za-z0-9][\w.-]*)\] ?`), false}, // gangrun
	{textmatch.New(`^\[(?P<rank>\d+)\]:? ?`), false},                            // hydra, Intel MPI
	{textmatch.New(`^ *(?P<rank>\d+)[:>] ?`), false},                            // srun
	{textmatch.New(`^\[pod/[\w.-]*?(?P<rank>\d+)/[\w.-]+\] ?`), false},          // kubectl logs --prefix
	{textmatch.New(`^[\[(<]?(?:[Rr]ank|RANK|[Tt]ask|[Ww]orker|[Pp]roc(?:ess)?|[Pp][Ee]|[RrWwPp])[ _=#:-]?(?P<rank>\d+)[\])>]?\s?[:|>]? ?`), false}, // of programs
	{textmatch.New(`^[\w.-]*[-_](?P<rank>\d+) +\| ?`), false},                                                                                      // docker compose
	{textmatch.New(`^(?P<host>[A-Za-z][\w.-]*\d[\w.-]*): ?`), false},                                                                               // pdsh
}

// launchers begin lines of their own among those of the ranks.
var launchers = textmatch.New(`^(?:gangrun|srun|slurmstepd|mpirun|mpiexec|prterun|\[mpiexec|\[proxy): |^[-=]{5}|^=   |^\[[\w.-]+:\d+(?::\d+)*\] |^ *\d+ +\S+\(.*\[0x|^==== backtrace|^YOUR APPLICATION|^This typically refers|^Please see the FAQ`)

// unprefix removes the tags of lines, and sets the ranks that the tags name.
func unprefix(lines []job.Line) {
	for _, t := range tags {
		if !t.sure && !t.holds(lines) {
			continue
		}
		done := false
		for i := range lines {
			done = t.strip(&lines[i]) || done
		}
		if done {
			return
		}
	}
}

// holds reports whether nearly all lines are marked in this way, with numbers that occur several
// times. The numbers of ranks do; those of lists do not.
func (t tag) holds(lines []job.Line) bool {
	marked, others, again := 0, 0, false
	seen := map[string]bool{}
	at, most := t.line.SubexpIndex("rank"), 3
	if at < 0 {
		at, most = t.line.SubexpIndex("host"), 10
	}
	for _, l := range lines {
		switch m := t.line.FindStringSubmatch(l.Text); {
		case m != nil:
			marked++
			again = again || seen[m[at]]
			seen[m[at]] = true
		case strings.TrimSpace(l.Text) != "" && !launchers.MatchString(l.Text):
			others++
		}
	}
	return marked >= 3 && again && others*most <= marked
}

// strip removes the tag of one line.
func (t tag) strip(l *job.Line) bool {
	m := t.line.FindStringSubmatch(l.Text)
	if at := t.line.SubexpIndex("rank"); m == nil || at >= 0 && len(m[at]) > 7 {
		return false
	}
	l.Text = l.Text[len(m[0]):]
	if strings.Contains(l.Text, ">:") {
		l.Text = innerTag.ReplaceAllString(l.Text, "")
	}
	for i, name := range t.line.SubexpNames() {
		switch {
		case m[i] == "":
		case name == "rank":
			l.Rank = Number(m[i])
		case name == "local" && len(m[i]) < 6:
			l.Rank = LocalRanks + Number(m[i])
		case name == "host":
			l.Host = m[i]
		case name == "stream" && m[i] != "stdout":
			l.Source = job.SourceStderr
		}
	}
	return true
}
