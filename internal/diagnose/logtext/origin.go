package logtext

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Origin is what the name of a log tells about the content of the log.
type Origin struct {
	Name   string
	Rank   int    // -1 if the name has no rank, or if the log has the output of several ranks
	Host   string // empty if the name has no host
	Source job.Source
}

var (
	rankName = textmatch.New(`(?i)(?:^|[/._-])(?:global[-_]?)?(?:rank|task|proc|process|worker|replica|pod)[-._]?(\d+)(?:$|[/._-])`)
	// lonelyRank matches the name of a log that shows the rank even if there is no other log.
	lonelyRank = textmatch.New(`(?i)^(?:o|e|out|err|log|stdout|stderr|std|rsl\.(?:out|error))[._-](\d{1,5})(?:[._-](?:log|out|err|txt))?$`)
	torchDir   = textmatch.New(`(?:^|/)attempt_\d+/(\d+)/(?:stdout|stderr|std(?:out|err)\.log|error\.json)$`)
	// packedEnd matches the end of the name of a compressed log.
	packedEnd = textmatch.New(`(?i)\.(?:gz|bz2|zst|zstd)$`)
	// stderrName and stdoutName match the part of a name that says which stream the log holds.
	stderrName = textmatch.New(`(?i)(?:^|[/._-])(?:std)?err(?:ors?)?(?:$|[/._-])`)
	stdoutName = textmatch.New(`(?i)(?:^|[/._-])(?:std)?out(?:put)?(?:$|[/._-])`)
	kernelName = textmatch.New(`(?i)(?:^|[._-])(?:dmesg|kern|kernel|syslog|messages|journal|journalctl)(?:$|[._-])`)
	// errorName matches the name of a file in which a rank records its exception for PyTorch's elastic agent.
	errorName = textmatch.New(`(?i)(?:^|[/._-])error\.json$|/reply\.json$`)
	hostName  = textmatch.New(`(?i)(?:^|[/._-])((?:node|host|cn|nid|gpu|compute|worker-node|h|n)-?\d{1,6})(?:$|[/._-])`)
	// masterName and workerName match the names of the logs of pods. If rank 0 has a pod with a master's name, the
	// ranks of the workers come after it.
	masterName = textmatch.New(`(?i)(?:^|[/._-])(?:master|chief)-0(?:$|[^\w])`)
	workerName = textmatch.New(`(?i)(?:^|[/._-])worker-\d+(?:$|[^\w])`)
	digits     = regexp.MustCompile(`\d+`)
)

// Origins returns the Origin of each log of one job, from the names of the logs. If names differ only in a
// number, that number is the rank, unless it is the number of a host.
func Origins(names []string) []Origin {
	all := make([]Origin, len(names))
	alike := map[string][]int{} // by shape, the indexes of names that differ only in numbers
	for i, name := range names {
		o := named(name)
		if all[i] = o; o.Rank < 0 && o.Source != job.SourceKernel {
			shape := digits.ReplaceAllString(streamless(name), "#")
			alike[shape] = append(alike[shape], i)
		}
	}
	for _, group := range alike {
		numberRanks(all, group)
	}
	if slices.ContainsFunc(names, masterName.MatchString) {
		for i, name := range names {
			switch {
			case masterName.MatchString(name):
				all[i].Rank = 0
			case all[i].Rank >= 0 && workerName.MatchString(name):
				all[i].Rank++
			}
		}
	}
	return all
}

// jobDigits is the number of digits from which a number is rather that of a job than that of a rank.
const jobDigits = 4

// named returns the Origin of a log according to its name alone.
func named(name string) Origin {
	path := packedEnd.ReplaceAllString(filepath.ToSlash(name), "")
	base := path[strings.LastIndexByte(path, '/')+1:]
	o := Origin{Name: name, Rank: -1, Source: job.SourceStdout}
	tail := path
	if parts := strings.Split(path, "/"); len(parts) > 2 {
		tail = strings.Join(parts[len(parts)-2:], "/")
	}
	switch {
	case errorName.MatchString(path):
		o.Source = job.SourceErrorFile
	case kernelName.MatchString(base):
		o.Source = job.SourceKernel
	case stderrName.MatchString(tail):
		o.Source = job.SourceStderr
	}
	if m := lonelyRank.FindStringSubmatch(base); m != nil && o.Source != job.SourceKernel && (len(m[1]) < jobDigits || m[1][0] == '0') {
		o.Rank = Number(m[1])
	}
	if m := hostName.FindStringSubmatch(tail); m != nil {
		o.Host = m[1]
	}
	for _, m := range [][]string{rankName.FindStringSubmatch(tail), torchDir.FindStringSubmatch(path)} {
		if m != nil && len(m[1]) < 8 && o.Source != job.SourceKernel {
			o.Rank = Number(m[1])
			break
		}
	}
	return o
}

// streamless returns a name without the part that says which stream the log holds.
func streamless(name string) string {
	name = packedEnd.ReplaceAllString(filepath.ToSlash(name), "")
	return stderrName.ReplaceAllString(stdoutName.ReplaceAllString(name, "/"), "/")
}

// MostLocal limits how many ranks one host has.
const MostLocal = 256

// manyRanks is the number from which the lowest number in names of logs is not that of a rank. The ranks are then the
// differences from the lowest number.
const manyRanks = 10

// numberRanks sets the ranks of logs whose names differ only in numbers. group has the indexes of these logs.
func numberRanks(all []Origin, group []int) {
	values := make([][]string, len(group)) // the numbers in each name
	for k, i := range group {
		values[k] = digits.FindAllString(streamless(all[i].Name), -1)
	}
	var varying []int
	for at := range values[0] {
		if slices.ContainsFunc(values, func(v []string) bool { return v[at] != values[0][at] }) {
			varying = append(varying, at)
		}
	}
	if len(varying) == 0 || len(varying) > 2 {
		return
	}
	ofHost := func(at int) bool {
		return slices.ContainsFunc(group, func(i int) bool {
			return all[i].Host != "" && strings.HasSuffix(all[i].Host, values[slices.Index(group, i)][at])
		})
	}
	last := varying[len(varying)-1]
	if len(varying) == 1 {
		if ofHost(last) {
			return
		}
		first := Number(values[0][last])
		for _, v := range values {
			first = min(first, Number(v[last]))
		}
		if first < manyRanks {
			first = 0
		}
		for k, i := range group {
			if len(values[k][last]) < 8 {
				all[i].Rank = Number(values[k][last]) - first
			}
		}
		return
	}
	// There is one log for each rank of each host. The second number is the local rank.
	perHost := map[string]int{}
	for _, v := range values {
		if Number(v[last]) >= MostLocal {
			return // a time or a process ID
		}
	}
	for _, v := range values {
		perHost[v[varying[0]]] = max(perHost[v[varying[0]]], Number(v[last])+1)
	}
	hosts := make([]string, 0, len(perHost))
	for h := range perHost {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b string) int { return cmp.Compare(Number(a), Number(b)) })
	for k, i := range group {
		all[i].Rank = Number(values[k][last])
		for _, h := range hosts[:slices.Index(hosts, values[k][varying[0]])] {
			all[i].Rank += perHost[h]
		}
	}
}
