package logtext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/job"
)

// tag is a form in which launchers mark the lines of a rank.
type tag struct {
	line *textmatch.Pattern // has the group rank, local or host, and sometimes host and stream
	// sure is true if one line with the tag is proof enough. Otherwise nearly all lines of a log must have it.
	sure bool
	// inner is true if the launcher also writes the tag within a line that the program has written in parts.
	inner bool
	// host is true if the number may be that of a host. The tags of ranks then follow the tag of the host.
	host bool
	// machine is true if the number in the tag is part of a host's name. The number counts as a rank only if a log has
	// tags of several hosts.
	machine bool
}

// mpirunTag matches the tag of prterun and of mpirun, with or without --timestamp-output.
const mpirunTag = `^(?:\w{3} \w{3} +\d+ [\d:]{8} \d{4})?\[(?:[\w.-]+@)?\d+,(?P<rank>\d+)\](?:\[(?P<host>[\w.-]+):\d+\])?<(?P<stream>stdout|stderr|stddiag)>: ?`

// Read adds LocalRanks to the rank of a line if the tag of the line has only the number of the rank on its
// host, as tags of torchrun do.
const LocalRanks = 1 << 20

// innerTag matches a tag that mpirun writes within a line, because the program has written the line in parts.
var innerTag = textmatch.New(`(?:\w{3} \w{3} +\d+ [\d:]{8} \d{4})?\[(?:[\w.-]+@)?\d+,\d+\](?:\[[\w.-]+:\d+\])?<(?:stdout|stderr|stddiag)>:`)

// torchTag is the tag that torch itself prints.
var torchTag = tag{line: textmatch.New(`^\[rank(?P<rank>\d+)\]: ?`), sure: true}

var (
	podTag = textmatch.New(`^\[pod/[\w.-]*?(?P<rank>\d+)/[\w.-]+\] ?`)
	// podMaster matches the tag of the pod of rank 0, if the other ranks have pods of workers.
	podMaster = textmatch.New(`^\[pod/[\w.-]*(?:master|chief)-0/`)
)

var tags = []tag{
	{line: textmatch.New(mpirunTag), sure: true},
	// torchrun
	{line: textmatch.New(`^\[default(?P<local>\d+)\]: ?`), sure: true},
	// Horovod
	{line: textmatch.New(`^(?:\w{3} \w{3} +\d+ [\d:]{8} \d{4})?\[(?P<rank>\d+)\]<(?P<stream>stdout|stderr)>: ?`), sure: true},
	torchTag, // torch
	// Distributed of Julia
	{line: textmatch.New(`^ *From worker (?P<rank>\d+):(?:\t| {1,6}|$)`), sure: true},
	// gangrun
	{line: textmatch.New(`^\[(?P<rank>\d+) (?P<host>[A-Za-z0-9][\w.-]*)\] ?`)},
	{line: textmatch.New(`^<(?P<rank>\d+)>:? ?`)},
	// hydra, Intel MPI
	{line: textmatch.New(`^\[(?P<rank>\d+)\]:? ?`), inner: true},
	// srun
	{line: textmatch.New(`^ *(?P<rank>\d+)(?:[:>]| [|│›»]| [-=]>)(?: |$)`)},
	// TensorFlow
	{line: textmatch.New(`^\[(?:(?P<master>chief|master)(?:-0)?|worker[-_:](?P<rank>\d+))\] ?`)},
	// kubectl logs --prefix
	{line: podTag},
	// of programs
	{line: textmatch.New(`^[\[(<]?(?:[Rr]ank|RANK|[Tt]ask|[Ww]orker|[Pp]roc(?:ess)?|[Pp][Ee]|[RrWwPp])[ _=#:-]?(?P<rank>\d+)[\])>]?\s?[:|>]? ?`)},
	{line: textmatch.New(`^[\[(<]?(?:pid[ =]\d+,? )?(?:slot|shard|replica|container|member|client|actor|trainer|learner|instance|peer|child|[Ss]lot|[Ss]hard|[Ww]orker)[ _:#=-]?(?P<rank>\d+)(?:[\])>]:?|:| | [|›»]| ->)(?: |$)`), host: true},
	{line: textmatch.New(`^[\[(<]?(?:node|host)[ _:#=-]?(?P<rank>\d+)(?:[\])>]:?|:| | [|›»]| ->)(?: |$)`), host: true, machine: true},
	// docker compose
	{line: textmatch.New(`^[\w.-]*[-_](?P<rank>\d+) +\| ?`)},
	// stern
	{line: textmatch.New(`^(?:\+ )?[a-z][\w.-]*(?:worker|replica|rank|node|trainer|executor)s?-(?P<rank>\d+) (?:› )?[a-z][\w-]* (?:[│|] ?)?`)},
	// pdsh
	{line: textmatch.New(`^(?P<host>[A-Za-z][\w.-]*\d[\w.-]*|\d{1,3}(?:\.\d{1,3}){3}): ?`)},
}

// launchers matches the beginning of lines that launchers themselves print.
var launchers = textmatch.New(`^(?:gangrun|pdsh@[\w.-]+|clush|srun|slurmstepd|mpirun|mpiexec|prterun|\[mpiexec|\[proxy): |^[-=]{5}|^=   `)

// hostTag matches what Open MPI and UCX write before the lines of a process.
var hostTag = textmatch.New(`^\[[\w.-]+:\d+(?::\d+)*\] `)

// untagged reports whether a line has no tag because a launcher, or the handler of a crash, has printed it.
func untagged(t string) bool {
	switch {
	case strings.TrimSpace(t) == "", launchers.MatchString(t), strings.Contains(t, "[0x"):
		return true
	case t[0] == '[':
		return hostTag.MatchString(t)
	}
	return strings.HasPrefix(t, "==== backtrace") || strings.HasPrefix(t, "YOUR APPLICATION") || strings.HasPrefix(t, "This typically refers") || strings.HasPrefix(t, "Please see the FAQ")
}

// deepSpeed matches a line of DeepSpeed's launcher after the tag of a host that pdsh has written.
var deepSpeed = textmatch.New(`^[\w.-]+: \[[\d :,-]+\] \[INFO\] \[launch\.py:|^pdsh@`)

// unprefix removes the tags of lines, sets the ranks that the tags name, and returns the lines. It divides a line that
// several ranks have written.
func unprefix(lines []job.Line) []job.Line {
	hostsOnly := slices.ContainsFunc(lines, func(l job.Line) bool { return deepSpeed.MatchString(l.Text) })
	if legended(lines, true) {
		unstamp(lines)
		return lines
	}
	for _, t := range tags {
		if !t.sure && (!t.holds(lines) || hostsOnly && t.line.SubexpIndex("rank") >= 0) {
			continue
		}
		if t.line == tags[0].line {
			lines = divided(lines)
		}
		done, master := false, t.line == podTag && slices.ContainsFunc(lines, func(l job.Line) bool { return podMaster.MatchString(l.Text) })
		for i := range lines {
			worker := master && !podMaster.MatchString(lines[i].Text)
			stripped := t.strip(&lines[i])
			if done = stripped || done; stripped && worker {
				lines[i].Rank++ // rank 0 has a pod of its own
			}
		}
		if !done {
			continue
		}
		if t.inner {
			lines = t.apart(lines)
		}
		switch {
		case t.sure:
		case t.host:
			hosts(lines, t.machine)
		case t.line.SubexpIndex("rank") < 0: // the tags of ranks may follow those of hosts
			for _, inner := range tags {
				if inner.within(lines) {
					localised(lines)
					break
				}
			}
		default:
			nested(lines)
		}
		unstamp(lines)
		return lines
	}
	if !legended(lines, false) && !gridded(lines) && !learned(lines) {
		opened(lines)
	}
	return lines
}

// divided divides the lines into which mpirun has put the output of several ranks, or of both streams of a rank.
func divided(lines []job.Line) []job.Line {
	var all []job.Line
	for _, l := range lines {
		start := tags[0].line.FindStringIndex(l.Text)
		for from := 0; start != nil; {
			at := innerTag.FindStringIndex(l.Text[start[1]+from:])
			if at == nil {
				break
			}
			at[0], at[1] = at[0]+start[1]+from, at[1]+start[1]+from
			if a, b := strings.TrimSpace(l.Text[at[0]:at[1]]), strings.TrimSpace(l.Text[:start[1]]); a[strings.IndexByte(a, '['):] == b[strings.IndexByte(b, '['):] {
				from = at[1] - start[1]
				continue
			}
			before := l
			before.Text, l.Text, from = l.Text[:at[0]], l.Text[at[0]:], 0
			all = append(all, before)
			start = tags[0].line.FindStringIndex(l.Text)
		}
		all = append(all, l)
	}
	return all
}

// innerRank matches a tag of hydra or Intel MPI in the middle of a line.
var innerRank = textmatch.New(`\S(\[(\d{1,5})\] )`)

// apart divides lines that several ranks have written. Only ranks that have lines of their own count.
func (t tag) apart(lines []job.Line) []job.Line {
	ranks := map[int]bool{}
	for _, l := range lines {
		ranks[l.Rank] = l.Rank >= 0
	}
	var all []job.Line
	for _, l := range lines {
		for {
			at := innerRank.FindStringIndex(l.Text)
			if at == nil || l.Rank < 0 {
				break
			}
			rank := Number(innerRank.FindStringSubmatch(l.Text)[2])
			if !ranks[rank] || rank == l.Rank {
				break
			}
			before := l
			before.Text = l.Text[:at[0]+1]
			all = append(all, before)
			l.Text, l.Rank = l.Text[at[1]:], rank
		}
		all = append(all, l)
	}
	return all
}

// process matches what NCCL writes before the lines of a process, with the number of its GPU.
var process = textmatch.New(`^[\w.-]+:\d+:\d+ \[(\d+)\] NCCL `)

// several reports whether a log has the output of several ranks, although its name names one rank.
func several(lines []job.Line) bool {
	ranks, gpus := map[string]bool{}, map[string]bool{}
	for _, l := range lines {
		if !strings.Contains(l.Text, "[") {
			continue
		}
		if m := torchTag.line.FindStringSubmatch(l.Text); m != nil {
			ranks[m[1]] = true
		} else if m := process.FindStringSubmatch(l.Text); m != nil {
			gpus[m[1]] = true
		}
	}
	return len(ranks) > 1 || len(gpus) > 1
}

// localised changes local ranks to ranks. The numbers are local ranks if all hosts have the same numbers from 0 on. The
// ranks of one host come after those of another, in the order of the hosts' names.
func localised(lines []job.Line) {
	ranks, each := map[string]map[int]bool{}, 0
	for _, l := range lines {
		if l.Host == "" || l.Rank < 0 {
			continue
		}
		if ranks[l.Host] == nil {
			ranks[l.Host] = map[int]bool{}
		}
		ranks[l.Host][l.Rank] = true
		each = max(each, l.Rank+1)
	}
	if len(ranks) < 2 || each < 2 {
		return
	}
	var all []string
	for h, own := range ranks {
		if len(own) != each {
			return
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for i, l := range lines {
		if l.Rank >= 0 && l.Host != "" {
			lines[i].Rank += each * slices.Index(all, l.Host)
		}
	}
}

// hosts sets the ranks of lines to those in the tags after the removed ones, if there are such tags. The removed tags
// then are those of hosts. If machine is true and all removed tags have the same number, the number is not a rank.
func hosts(lines []job.Line, machine bool) {
	numbers := make([]int, len(lines))
	several := map[int]bool{}
	for i := range lines {
		numbers[i], lines[i].Rank = lines[i].Rank, -1
		several[numbers[i]] = numbers[i] >= 0
	}
	delete(several, -1)
	for _, inner := range tags {
		if inner.within(lines) {
			for i, n := range numbers {
				if n >= 0 && lines[i].Host == "" {
					lines[i].Host = fmt.Sprintf("node-%d", n)
				}
			}
			return
		}
	}
	for i, n := range numbers {
		if lines[i].Rank = n; machine && len(several) == 1 && n >= 0 {
			lines[i].Rank, lines[i].Host = -1, fmt.Sprintf("node-%d", n)
		}
	}
}

// nested sets the ranks of lines to those in torch's tags, if a torch tag follows a launcher's tag with another number.
// The number of the launcher's tag is then that of a host.
func nested(lines []job.Line) {
	host := slices.ContainsFunc(lines, func(l job.Line) bool {
		m := torchTag.line.FindStringSubmatch(l.Text)
		return m != nil && l.Rank >= 0 && Number(m[1]) != l.Rank
	}) || foreignTag(lines)
	for i := range lines {
		if l := &lines[i]; host && !torchTag.strip(l) && l.Rank >= 0 {
			l.Rank = -1
		}
	}
}

// ownNumber matches the rank of a process at the beginning of a line in which MPI or PETSc reports an error.
var ownNumber = textmatch.New(`^Abort\(-?\d+\) on node \d+ \(rank (\d+) in comm 0\)|^\[(\d+)\]PETSC ERROR: |^Rank (\d+) \[\w{3} \w{3} `)

// foreignTag reports whether the tags of all lines have the same number, and a line names another rank as its own. The
// number is then that of a test of ctest, or of a job.
func foreignTag(lines []job.Line) bool {
	only, other := -1, false
	for _, l := range lines {
		if l.Rank < 0 {
			continue
		}
		if only >= 0 && l.Rank != only {
			return false
		}
		only = l.Rank
		if m := ownNumber.FindStringSubmatch(l.Text); m != nil && Number(m[1]+m[2]+m[3]) != only {
			other = true
		}
	}
	return other
}

// within removes tags of a form after the tags of hosts, if there are several such tags. It reports whether it did so.
func (t tag) within(lines []job.Line) bool {
	if t.line.SubexpIndex("rank") < 0 {
		return false
	}
	seen, marked := map[string]int{}, 0
	for _, l := range lines {
		if m := t.line.FindStringSubmatch(l.Text); m != nil {
			seen[m[t.line.SubexpIndex("rank")]]++
			marked++
		}
	}
	again := 0
	for _, n := range seen {
		if n > 1 {
			again++
		}
	}
	if again < 2 && (len(seen) < 2 || marked*2 < len(lines)) {
		return false
	}
	for i := range lines {
		t.strip(&lines[i])
	}
	return true
}

// holds reports whether nearly all lines have the tag, and some number occurs several times. The numbers of ranks
// recur; those of lists do not.
func (t tag) holds(lines []job.Line) bool {
	marked, others, above, again := 0, 0, 0, false // above is the number of lines before the first line with a tag
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
		case untagged(l.Text):
		case marked == 0:
			above++
		default:
			others++
		}
	}
	if above > 2*marked {
		others += above
	}
	return marked >= 3 && again && others*most <= marked
}

// strip removes the tag of a line, and sets what the tag says of the line. It reports whether the line had the tag.
func (t tag) strip(l *job.Line) bool {
	m := t.line.FindStringSubmatch(l.Text)
	if at := t.line.SubexpIndex("rank"); m == nil || at >= 0 && len(m[at]) > 7 {
		return false
	}
	l.Text = l.Text[len(m[0]):]
	if strings.Contains(l.Text, ">:") {
		l.Text = innerTag.ReplaceAllString(l.Text, "")
	}
	if inner := strings.TrimSuffix(m[0], " ") + " "; t.inner && strings.Contains(l.Text, inner[:len(inner)-1]) {
		l.Text = strings.TrimSuffix(strings.ReplaceAll(l.Text, inner, ""), inner[:len(inner)-1])
	}
	for i, name := range t.line.SubexpNames() {
		switch {
		case m[i] == "":
		case name == "rank":
			l.Rank = Number(m[i])
		case name == "master":
			l.Rank = 0
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
