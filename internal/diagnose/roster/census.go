package roster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Log is one log, or what one rank has printed of a log.
type Log struct {
	Rank  int // -1 if it is not known
	Host  string
	Lines []job.Line
	Text  []string // of the lines, without the prefixes of launchers
	Lanes []int    // the ranks that the lines mark as their own, as logtext.Lanes returns them
}

// At returns the rank that has printed line i, or -1 if the log does not show it.
func (l Log) At(i int) int {
	switch {
	case l.Rank >= 0:
		return l.Rank
	case l.Lanes != nil && l.Lanes[i] >= 0:
		return l.Lanes[i]
	}
	return Own(l.Text[i])
}

// Census is what logs say of the ranks of a job: their processes, their hosts and their number.
type Census struct {
	size  int
	pids  map[int]int
	hosts map[string]map[int]bool
	heard map[int]bool
	nodes map[string]int
	each  int                     // ranks on a host
	units map[string]map[int]bool // by the word with which the program counts its ranks, as in "tile 3 of 4"
}

var (
	// worldSize matches how programs and libraries state the number of ranks.
	worldSize = textmatch.New(`(?i)^\W*(?:(?:number|no\.?|#) of )?(?:mpi )?(?:ranks|processes|tasks|procs|images|locales|pes)\s*[:=]\s*(\d{1,5})\s*$|\b(?:world[_ ]?size|nranks|num_processes|nproc|n_?procs|total ranks)\b["']?\W{0,4}(\d{1,5})\b|\b(?:on|with|using) +(\d{1,5}) +(?:mpi )?(?:ranks|processes|gpus|procs|tasks)\b|\bNCCL version .*nranks (\d{1,5})|\bprocess: \d+ ?/ ?(\d{1,5})$`)
	// unit matches a text such as "tile 3 of 4".
	unit = textmatch.New(`\b([A-Za-z]{3,12})[ =:#]{1,2}(\d{1,5}) ?(?:/|of|out of) ?(\d{1,5})\b`)
	// hostOfRank has forms of lines that name a host and its rank, or the first of its ranks.
	hostOfRank = []*textmatch.Pattern{
		textmatch.New(`(?i)(?:^|[^_a-z])(?:global[_ ]|world[_ ])?(?:ranks?|tasks?)[ =:#]{0,2}(?P<rank>\d{1,6})(?: ?(?:/|of|out of|-|\.\.|to) ?\d{1,6})?[,:]? {1,3}(?:is |are |runs? |running |started |ready )?(?:on|at|@|host[=: ]|node[=: ]|hostname[=: ]) ?(?:host |node )?(?P<host>[A-Za-z][\w.-]*\d[\w.-]*)`),
		textmatch.New(`(?i)\b(?:host|node|hostname|machine)[ =:]{1,2}(?P<host>[A-Za-z][\w.-]*\d[\w.-]*)[ ,;:(]{1,3}(?:is |has |runs |with )?(?:global[_ ]|world[_ ])?(?:ranks?|tasks?)[ =:#]{1,2}(?P<rank>\d{1,6})\b`),
		textmatch.New(`^(?P<host>[A-Za-z][\w.-]*\d[\w.-]*)[: ]+\(?(?:runs |has |is |hosts |[-=]+> ?)?(?:global[_ ]|world[_ ])?(?:ranks?|tasks?)[ =:#]{1,2}(?P<rank>\d{1,6})\b`),
		textmatch.New(`^srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>[\d,-]+):`),
		textmatch.New(`(?i)\brank[ =:]{1,2}(?P<rank>\d{1,6}),? \(?(?:ip|host|node|addr)[ =:]{1,2}(?P<host>[\d.]+\d|[a-z][\w.-]*\d)\b`),
		textmatch.New(`\bip=(?P<host>[\d.]+)\b.{0,60}\b(?:world_|global_)?rank[ =:]{1,2}(?P<rank>\d{1,6})\b`),
		textmatch.New(`^(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO .*(?: rank (?P<rank>\d{1,6}) nranks |: \d+\[\w+\] -> \d+\[\w+\] \[receive\])`),
		textmatch.New(`^(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO Channel .*: (?P<rank>\d{1,6})\[\w+\] -> \d+\[\w+\] (?:\[send\]|via (?:P2P|SHM))`),
		textmatch.New(`\bpod/\S*?-(?P<rank>\d{1,5}) node/(?P<host>\S+)`),
		textmatch.New(`\bassigned \S*?-(?P<rank>\d{1,5})(?:-[a-z0-9]{5})? to (?P<host>[\w.-]+)`),
		textmatch.New(`^\S*?-(?P<rank>\d{1,5})(?:-[a-z0-9]{5})? +\d+/\d+ +\w.* (?P<host>[a-z][\w.-]*\d[\w.-]*) +<none>`),
		textmatch.New(`\(ranks? (?P<rank>[\d,-]+)\).*\bnode[ /](?P<host>[\w.-]+)`),
		textmatch.New(`\bnode[ /](?P<host>[\w.-]+).*\(ranks? (?P<rank>[\d,-]+)\)`),
	}
	// hostNumber matches how a program states the number of its host among the hosts.
	hostNumber = textmatch.New(`(?i)\b(?:machine|node|group)[_ ]rank[ =:]{1,3}(\d{1,5})\b`)
	ranksEach  = textmatch.New(`(?i)\bn?proc(?:esse)?s?[_-]per[_-]node[ =:]{1,3}(\d{1,5})\b|\blocal[_ ]world[_ ]size[ =:]{1,3}(\d{1,5})\b|\bnum_local_procs=(\d{1,5})\b`)
	// tagHost matches a host and a process of the line's own rank, as NCCL, Open MPI and UCX write them.
	tagHost = textmatch.New(`^\[?([A-Za-z][\w.-]*\d[\w.-]*):\d{2,8}[\]:]`)
	// tableRow matches a row of torchrun's table of failures.
	tableRow = textmatch.New(`^ +(?:host +: ([\w.-]+)|rank +: (\d{1,6}) \(local_rank|exitcode +: -?\d+ +\(pid: (\d{2,8})\))`)
	// mapping matches the ranks of a host in DeepSpeed's list of the ranks of all hosts.
	mapping = textmatch.New(`'([\w.-]+)': \[(\d{1,6})\b`)
	// reported matches the words with which launchers name a rank.
	reported = textmatch.New(`Process name: \[\S+,(\d+)\]|on rank (\d+) in communicator|process rank (\d+) with PID|- process (\d+)$|\(rank (\d+) in comm|exit status of rank (\d+):`)
	// pidHere matches how a program names its process in its own log.
	pidHere = textmatch.New(`(?i)\bpid[ =:]{1,3}(\d{2,8})\b`)
)

// Count reads the logs of a job.
func Count(logs []Log) *Census {
	c := &Census{pids: map[int]int{}, hosts: map[string]map[int]bool{}, heard: map[int]bool{}, nodes: map[string]int{}, units: map[string]map[int]bool{}}
	parts := map[string]int{}
	c.named(logs)
	for _, l := range logs {
		if l.Rank >= 0 {
			c.heard[l.Rank] = true
			c.lives(l.Host, l.Rank)
		}
		c.tables(l.Text)
		host, row := "", -1
		for i, t := range l.Text {
			if len(t) > longLine {
				t = t[:longLine]
			}
			if m := tableRow.FindStringSubmatch(t); m != nil {
				if host = cmp.Or(m[1], host); m[2] != "" {
					row = logtext.Number(m[2])
					c.lives(host, row)
				}
				if m[3] != "" && row >= 0 {
					c.process(logtext.Number(m[3]), row)
				}
			}
			c.read(l, i, t, parts)
		}
	}
	c.number(logs)
	for word, seen := range c.units {
		if len(seen) < 2 || parts[word] < 0 || len(seen) < parts[word]-1 {
			delete(c.units, word)
		}
	}
	return c
}

// number assigns ranks to hosts if the logs name no rank, and the names of the hosts differ only in consecutive
// numbers.
func (c *Census) number(logs []Log) {
	if len(c.hosts) > 0 || len(c.heard) > 0 {
		return
	}
	byNumber, form := map[int]string{}, ""
	for _, l := range logs {
		for _, line := range l.Lines {
			h := cmp.Or(line.Host, l.Host)
			if h == "" || h == byNumber[logtext.Number(h[len(strings.TrimRight(h, "0123456789")):])] {
				continue
			}
			name := strings.TrimRight(h, "0123456789")
			n := logtext.Number(h[len(name):])
			if name == h || form != "" && name != form || byNumber[n] != "" {
				return
			}
			byNumber[n], form = h, name
		}
	}
	if len(byNumber) < 2 || c.size > 0 && c.size != len(byNumber) {
		return
	}
	all := slices.Sorted(maps.Keys(byNumber))
	if all[len(all)-1]-all[0] != len(all)-1 {
		return
	}
	for rank, n := range all {
		c.lives(byNumber[n], rank)
	}
}

// read reads t, line i of a log.
func (c *Census) read(l Log, i int, t string, parts map[string]int) {
	line := l.Lines[i]
	c.pairs(t)
	if pid, rank, ok := Process(line.Text); ok {
		c.process(pid, rank)
	}
	rank := l.At(i)
	if rank >= 0 {
		c.heard[rank] = true
		c.lives(line.Host, rank)
	}
	if l.Rank >= 0 {
		c.process(Printer(line.Text), l.Rank)
		if m := pidHere.FindStringSubmatch(t); m != nil && line.Source != job.SourceKernel {
			c.process(logtext.Number(m[1]), l.Rank)
		}
		if m := tagHost.FindStringSubmatch(t); m != nil {
			c.lives(m[1], l.Rank)
		}
	}
	if strings.Contains(t, "global_rank_mapping") {
		for rest := t; ; {
			at := mapping.FindStringIndex(rest)
			if at == nil {
				break
			}
			m := mapping.FindStringSubmatch(rest)
			c.lives(m[1], logtext.Number(m[2]))
			rest = rest[at[1]:]
		}
	}
	if l.Lanes != nil && l.Lanes[i] >= 0 {
		if m := pidHere.FindStringSubmatch(t); m != nil {
			c.process(logtext.Number(m[1]), l.Lanes[i])
		}
	}
	for _, p := range hostOfRank {
		if m := p.FindStringSubmatch(t); m != nil && m[p.SubexpIndex("rank")] != "" {
			for _, r := range numbers(m[p.SubexpIndex("rank")]) {
				c.lives(m[p.SubexpIndex("host")], r)
			}
			break
		}
	}
	if m := reported.FindStringSubmatch(t); m != nil {
		c.heard[first(m)] = true
	}
	if m := worldSize.FindStringSubmatch(t); m != nil && len(t) < 500 {
		c.size = max(c.size, first(m))
	}
	if m := hostNumber.FindStringSubmatch(t); m != nil && line.Host != "" {
		c.nodes[line.Host] = logtext.Number(m[1])
	}
	if m := ranksEach.FindStringSubmatch(t); m != nil {
		c.each = max(c.each, first(m))
	}
	if m := unit.FindStringSubmatch(t); m != nil {
		word, of := strings.ToLower(m[1]), logtext.Number(m[3])
		if seen, ok := parts[word]; ok && seen != of {
			of = -1 // the word counts several things
		}
		parts[word] = of
		if k := logtext.Number(m[2]); k < of {
			if c.units[word] == nil {
				c.units[word] = map[int]bool{}
			}
			if c.units[word][k] {
				parts[word] = -1 // each rank introduces itself only once
			}
			c.units[word][k] = true
		}
	}
}

// numbers parses a list of ranks such as 0-2,5.
func numbers(list string) (all []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if from == "" {
			continue
		}
		last := logtext.Number(from)
		if ranged {
			last = min(logtext.Number(to), last+longestList)
		}
		for r := logtext.Number(from); r <= last; r++ {
			all = append(all, r)
		}
	}
	return all
}

// longestList is how many ranks or pairs of one line are read at most.
const longestList = 4096

func (c *Census) process(pid, rank int) {
	if _, ok := c.pids[pid]; !ok && pid > 0 {
		c.pids[pid] = rank
	}
}

func (c *Census) lives(host string, rank int) {
	if host == "" || host == "localhost" {
		return
	}
	if c.hosts[host] == nil {
		c.hosts[host] = map[int]bool{}
	}
	c.hosts[host][rank], c.heard[rank] = true, true
}

// OfPID returns the rank of a process, or -1.
func (c *Census) OfPID(pid int) int {
	if r, ok := c.pids[pid]; ok && pid > 0 {
		return r
	}
	return -1
}

// Size returns the number of ranks of the job, as a line names it, or 0.
func (c *Census) Size() int { return c.size }

// Heard returns how many ranks the job has at least, according to the logs.
func (c *Census) Heard() int {
	n := c.size
	for r := range c.heard {
		n = max(n, r+1)
	}
	return n
}

// OfHost returns the lowest rank of a host, or -1. If the logs show the ranks of all other hosts, the ranks that are
// left are those of the host.
func (c *Census) OfHost(host string) int {
	if host == "" {
		return -1
	}
	if ranks := c.ranksOf(host); len(ranks) > 0 {
		return slices.Min(ranks)
	}
	if n, ok := c.nodes[host]; ok {
		return n * max(c.each, 1)
	}
	others := map[int]bool{}
	for _, ranks := range c.hosts {
		for r := range ranks {
			others[r] = true
		}
	}
	for r := range c.Heard() {
		if !others[r] && len(c.hosts) > 0 {
			return r
		}
	}
	return -1
}

// OfNode returns the lowest rank of a host. It returns -1 if the logs do not say which number the host has among the
// hosts, or how many ranks each host has.
func (c *Census) OfNode(host string) int {
	if n, ok := c.nodes[host]; ok && c.each > 0 {
		return n * c.each
	}
	return -1
}

// Unheard returns the only rank of which the logs say nothing, or -1.
func (c *Census) Unheard() int {
	only := -1
	for r := range c.Heard() {
		if !c.heard[r] && only >= 0 {
			return -1
		} else if !c.heard[r] {
			only = r
		}
	}
	return only
}

// All returns the ranks of which the logs say something.
func (c *Census) All() map[int]bool { return c.heard }

// OnHost reports whether the logs say that a rank is on a host. If they do not name the rank's host, OnHost assumes
// that a host has all ranks from its lowest known rank up to the lowest known rank of the next host.
func (c *Census) OnHost(rank int, host string) bool {
	mine := c.ranksOf(host)
	if len(mine) == 0 || slices.Contains(mine, rank) {
		return len(mine) > 0
	}
	for _, ranks := range c.hosts {
		for r := range ranks {
			if r == rank || r > slices.Min(mine) && r <= rank && !slices.Contains(mine, r) {
				return false
			}
		}
	}
	return len(c.hosts) > 1 && rank > slices.Min(mine)
}

// Knows reports whether the logs name a rank of a host.
func (c *Census) Knows(host string) bool {
	_, numbered := c.nodes[host]
	return host != "" && (numbered || len(c.ranksOf(host)) > 0)
}

// ranksOf returns the ranks of a host. The host may be named with or without its domain.
func (c *Census) ranksOf(host string) (all []int) {
	short, _, _ := strings.Cut(host, ".")
	address := host == "" || host[0] >= '0' && host[0] <= '9'
	for h, ranks := range c.hosts {
		if name, _, _ := strings.Cut(h, "."); h == host || name == short && !address {
			for r := range ranks {
				all = append(all, r)
			}
		}
	}
	return all
}

// unitNumber matches a word and the number after it.
var unitNumber = textmatch.New(`\b([A-Za-z]{3,12})[ =:#]{1,2}(\d{1,5})\b`)

// OfUnit returns the rank that a text names, or -1. The text must name the rank with a word that the logs of the job
// use for ranks, as in "worker 3".
func (c *Census) OfUnit(t string) int {
	if m := unitNumber.FindStringSubmatch(t); m != nil && c.units[strings.ToLower(m[1])] != nil {
		return logtext.Number(m[2])
	}
	return -1
}
