// Package roster finds out from the lines of logs which rank has printed a line, and which rank a process is.
package roster

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// longLine is the length in bytes from which a line is too long to name a process and its rank.
const longLine = 1000

// processes has forms of lines that name a process and its rank, in the groups pid and rank.
var processes = []*textmatch.Pattern{
	textmatch.New(`(?i)\bpid[ =:]{0,3}(?P<pid>\d{2,8})\b.{0,60}?(?:\b|world_|global_)rank[ =:#]{0,3}(?P<rank>\d{1,6})\b`),
	textmatch.New(`(?i)(?:^|[^_])(?:rank|task)[ =:#]{0,3}(?P<rank>\d{1,6})\b.{0,60}?\bpid[ =:]{0,3}(?P<pid>\d{2,8})\b`),
	textmatch.New(`(?i)^\W{0,3}(?:pet?|proc|process|processor|part|shard|worker|member|replica|image|locale|domain|block|chain|slot|trainer|actor|child|tile)[ #:=]{0,2}(?P<rank>\d{1,5})\b[:,]? (?:\w+ ){0,2}\(?pid[ =:]{0,3}(?P<pid>\d{2,8})\b`),
	textmatch.New(`^\[(?P<rank>\d{1,6})\] (?:\w+ )?pid[ =:]{0,3}(?P<pid>\d{2,8})\b`),
	textmatch.New(`^rank ?(?P<rank>\d{1,6})[ :=]{1,2}(?P<pid>\d{3,8})$`),
	textmatch.New(`(?i)^\W{0,2}(?:rank|task|proc|process)[ :=]{0,2}(?P<rank>\d{1,6})[ ,:@(]{1,3}(?:on )?(?:host[ =:])?[A-Za-z][\w.-]{0,60}[ ,:)]{1,3}(?:pid[ =:])?(?P<pid>\d{3,8})\)?$`),
	textmatch.New(`^\S+?:(?P<pid>\d{2,8}):\d+ \[\d+\] NCCL INFO .*\brank (?P<rank>\d{1,6}) nranks`),
	textmatch.New(`^\[[\w.-]+:(?P<pid>\d{2,8})\] \*\*\* reported by process \[\d+,(?P<rank>\d{1,6})\]`),
	// DeepSpeed
	textmatch.New(`\bprocess (?P<pid>\d{2,8}) spawned with command: .*-{2}local[_-]rank[=', ]+(?P<rank>\d{1,6})\b`),
}

// Process returns the PID and the rank that a line names. Some lines say that a process is a certain rank; ok is
// false for all other lines.
func Process(t string) (pid, rank int, ok bool) {
	if len(t) > longLine || !strings.Contains(t, "rank") && !strings.Contains(t, "Rank") && !strings.Contains(t, "RANK") && !strings.Contains(t, "reported by") && !strings.Contains(t, "pid") {
		return 0, -1, false
	}
	for _, p := range processes {
		if m := p.FindStringSubmatch(t); m != nil {
			// The message may name another process than the one that prints it.
			if said := p.FindStringSubmatch(logtext.Plain(t)); said != nil {
				m = said
			}
			return logtext.Number(m[p.SubexpIndex("pid")]), logtext.Number(m[p.SubexpIndex("rank")]), true
		}
	}
	return 0, -1, false
}

// printer matches the beginning of a process's lines as libraries and Ray write it, and the process that Ray names with
// an exception.
var printer = textmatch.New(`^\((?:\w[\w.]* )?pid=(\d{2,8})\b|\bray::\S+ \(pid=(\d{2,8})\b|^[\w.-]+:(\d{2,8}):\d+ \[\d+\] |^\[[\w.-]+:(\d{2,8})(?::\d+)*\] |^[\w-]+\.(\d{2,8})PSM2 `)

// Printer returns the process that has printed a line, or 0 if the line does not name it.
func Printer(t string) int {
	m := printer.FindStringSubmatch(t[:min(len(t), longLine)])
	for i := 1; i < len(m); i++ {
		if m[i] != "" {
			return logtext.Number(m[i])
		}
	}
	return 0
}

// pe matches the name of a PE, which is Charm++'s word for a part of a rank.
var pe = textmatch.New(`\bPe \d|\bProcessor \d+ Exiting`)

// NamesPE reports whether a message names a PE of Charm++, which is a part of a rank.
func NamesPE(t string) bool { return pe.MatchString(t) }

// titlePID matches the words with which a message names its own process.
var titlePID = textmatch.New(`(?i)\bpid[ =:]{1,3}(\d{2,8})\b`)

// PID returns the process that a message names, or 0.
func PID(t string) int {
	if m := titlePID.FindStringSubmatch(t[:min(len(t), longLine)]); m != nil {
		return logtext.Number(m[1])
	}
	return 0
}

var (
	// ownRank matches the words with which a program names its own rank in a message.
	ownRank = textmatch.New(`(?i)\b(?:(?:global|world|mpi|my|comm_world)[_ ]?)?rank(?:\(\))?["']?(?:[ =:#_(-]{0,6}| {7,14})(\d{1,6})\b|` +
		`^[\w.-]*\[(?:[rwp]|pe|rank)?(\d{1,6})(?:/\d{1,6}|:[a-z][\w.-]*| - [0-9a-f]{6,16})?\](?::? |\[)|\bMPI-process (\d{1,6}):|(?:\b|_)TP(\d{1,4})(?:\]|(?:_\w+)? pid=)|_DP(\d{1,4}) pid=|\[rank ?(\d{1,6})\]|` +
		`\bon (?:mpi )?(?:process|proc|processor|task|PET?|locale|image|worker)(?:[ #:=]*|\()(\d{1,6})\b|\b(?:at|in) (?:mpi )?(?:processor|proc|PET?|locale)[ #:=]*(\d{1,6})\b|\b(?:at|in) mpi (?:process|task|worker)[ #:=]*(\d{1,6})\b|\bon node (\d{1,6})/\d|` +
		`^\W{0,3}(?:\w{1,9}: )?(?:mpi[ _]?)?(?:processor[ #]|(?:process|proc|task|PET?|locale|worker)[ #:=_-]{0,2})(\d{1,6})\W{0,2}[:|>](?: |$)|` +
		`[\[(](?:[\w.-]+ )?(?:mpi[ _]?)?(?:process|processor|proc|PET?|task|locale|worker)[ #:=_-]{0,2}(\d{1,6})[\])]|` +
		`\b(?:my_?(?:id|pe|proc|task|node)|iam|ipe|proc_?id|process_?(?:index|id))["']?(?: *[=:] *|[ _])(\d{1,5})\b|^\W*ERROR STOP\b.*\bimage (\d{1,5})\b|\btask # +(\d{1,6})\b|\bPET(\d{3,6})\b|` +
		`\bProcess (\d{1,6}) terminated\b|\bprocess (\d{1,6}) terminated with\b|\bworker (\d{1,6}):|\bProcessor (\d{1,6}) Exiting|:mpi_rank_(\d{1,6})\]|^\[cli_(\d{1,6})\]|\btask (\d{1,6}) \(host |\((?:r|rank) ?(\d{1,6})\)|\[(?:[\w.-]+ )?r(\d{1,4})\]`)
	// localNumber matches the number of a rank on its host.
	localNumber = textmatch.New(`(?i)\blocal[_ ]rank["']?[ =:]{0,3}\d+`)
	// stamp matches the time at the beginning of a line.
	stamp = textmatch.New(`^\[?\d{4}[-/]\d\d[-/]\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?[ :-]+(?:(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL)[ :-]+)?`)
	// othersRank matches the words before another rank that a message names.
	othersRank = textmatch.New(`(?i)\b(?:to|from|with|by|lost|waiting for|peer|remote) rank`)
	// introduced matches a line with which a program says at its beginning which rank it is.
	introduced = textmatch.New(`(?i)^\W*(?:i am |this is )?(?:global[_ ])?rank[ =:]+(\d{1,6})(?: ?/ ?| of | out of )\d+\b|\bprocess:? (\d{1,6}) ?/ ?\d{1,6}\b|\bWORLD_SIZE=\d+ RANK=(\d{1,6})\b|^ *taskid: (\d{1,6}) hostname:|^process index: (\d{1,6})$|\bProcess \(global: (\d{1,6}), local|\bmy rank (?:is|=) ?(\d{1,6})\b|\b(?:node|host) [\w.-]+,? (?:is )?rank (\d{1,6})$|^(?:export )?(?:RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d{1,6})$`)
)

// first returns, as a number, the first group of a match that is not empty. It returns -1 if there is none.
func first(m []string) int {
	for i := 1; i < len(m); i++ {
		if m[i] != "" {
			return logtext.Number(m[i])
		}
	}
	return -1
}

// Own returns the rank that a line names as the one that has printed it, or -1.
func Own(t string) int {
	if len(t) > 500 && !strings.HasPrefix(t, `{"`) || othersRank.MatchString(t) {
		return -1
	}
	if t != "" && (t[0] == '[' || t[0] >= '0' && t[0] <= '9') {
		if at := stamp.FindStringIndex(t); at != nil {
			t = t[at[1]:]
		}
	}
	if strings.Contains(t, "ocal") {
		t = localNumber.ReplaceAllString(t, "")
	}
	return first(ownRank.FindStringSubmatch(t))
}

// together matches an error that all ranks of LAMMPS raise at once and only rank 0 prints.
var together = textmatch.New(`^ERROR: .*\(\S+\.cpp:\d+\)$`)

// Together reports whether a line is an error that all ranks of a program raise at once. Rank 0 prints it.
func Together(t string) bool { return together.MatchString(t) }

// labelled matches a line with the rank before it, as srun writes it.
var labelled = textmatch.New(`^ *(\d{1,5}): [^\d\s]`)

// Printed returns the rank that has printed t according to t itself, or -1. t is a line of a sign of failure.
func Printed(t string) int {
	if r := Own(t); r >= 0 {
		return r
	}
	if r := first(labelled.FindStringSubmatch(t)); r >= 0 {
		return r
	}
	return first(torn.FindStringSubmatch(t))
}

// torn matches the beginning of a rank's last words in a line that another rank had begun to print.
var torn = textmatch.New(`\S\[(\d{1,5})\]:? (?:terminate called|Traceback|[\w.:]*(?:Error|Exception|ERROR|FATAL)\b)`)

// pod matches the name of a pod of a job, with the number that Kubernetes, Kubeflow or a JobSet gave the pod.
var pod = textmatch.New(`(?i)\b(?:pods?/|pod )"?[a-z][\w.-]*?-\d+-(\d{1,5})-[a-z0-9]{5}\b|\b(?:pods?/|pod )"?[a-z][\w.-]*?-(\d{1,5})-[a-z0-9]{5}\b|\b(?:pods?/|pod )"?[a-z][\w.-]*?-(\d{1,5})(?:$|[^\w.-])|^[a-z][\w.-]*-(?:worker|replica|executor|node)s?-(\d{1,5}) +\d+/\d+ `)

// Worker reports whether the name of a log is that of a numbered worker, such as job-worker-3.log.
func Worker(file string) bool { return workerPod.MatchString(file) }

// workerPod matches the name of the pod of a worker. In jobs with such pods, rank 0 may have a pod of its own.
var workerPod = textmatch.New(`-worker-\d`)

// Pod returns the rank whose pod a line names, or -1. master says whether the job has a pod of its own for rank 0.
func Pod(t string, master bool) int {
	if len(t) > longLine {
		return -1
	}
	r := first(pod.FindStringSubmatch(t))
	if r >= 0 && master && workerPod.MatchString(t) {
		r++
	}
	return r
}

// masterPod matches the name of the pod of rank 0, or of its log, in a job whose other ranks have pods of workers.
var masterPod = textmatch.New(`(?i)(?:^|[/._-])(?:master|chief)-0(?:$|[^\w])`)

// Master reports whether a text names a pod that is reserved for rank 0.
func Master(t string) bool {
	return len(t) < longLine && (strings.Contains(t, "aster-0") || strings.Contains(t, "hief-0")) && masterPod.MatchString(t)
}

var (
	localFailed = textmatch.New(`failed \(exitcode: -?\d+\) local_rank: (\d{1,5}) \(pid|Child process \d+ \(local_rank (\d{1,5})\) FAILED \(exitcode -?\d+\)|--local_rank=(0)'.* exits with return code = -?[1-9]`)
	nodeCount   = textmatch.New(`\bnnodes[=: ]+(\d{1,5})\b`)
	nodeRank    = textmatch.New(`\bnode[_-]rank[=: ]+(\d{1,5})\b`)
	perNode     = textmatch.New(`\bnproc[_-]per[_-]node[=: ]+(\d{1,5})\b`)
)

// Torchrun collects what torchrun's logs say about its hosts and the rank that failed first.
type Torchrun struct{ local, nodes, node, each []int }

// Read reads one line.
func (t *Torchrun) Read(line string) {
	if len(line) > longLine && !strings.Contains(line, "failed (exitcode: ") || !strings.Contains(line, "local_rank") && !strings.Contains(line, "nnodes") {
		return
	}
	for _, f := range []struct {
		p    *textmatch.Pattern
		into *[]int
	}{{localFailed, &t.local}, {nodeCount, &t.nodes}, {nodeRank, &t.node}, {perNode, &t.each}} {
		if n := first(f.p.FindStringSubmatch(line)); n >= 0 {
			*f.into = append(*f.into, n)
		}
	}
}

// Restarted reports whether ranks have failed several times.
func (t *Torchrun) Restarted() bool { return len(t.local) > 1 }

// Rank returns the number of the rank that failed, or -1 if the lines do not show it.
func (t *Torchrun) Rank() int {
	// If ranks seem to have failed at once, torchrun names rank 0. It rarely does so each time.
	if t.Restarted() {
		t.local = slices.DeleteFunc(t.local, func(r int) bool { return r == 0 })
		slices.Sort(t.local)
		t.local = slices.Compact(t.local)
	}
	switch {
	case len(t.local) != 1:
		return -1
	case len(t.nodes) == 0 || t.nodes[0] == 1:
		return t.local[0]
	case len(t.node) == 0 || len(t.each) == 0:
		return -1
	}
	return t.node[0]*t.each[0] + t.local[0]
}

// headLines is how far from the beginning of a log a program may say which rank it is.
const headLines = 60

// Introduced returns the rank as which the program that wrote the log introduces itself. It returns -1 if the log
// names none, or several.
func Introduced(text []string) int {
	rank := -1
	for i, t := range text {
		if i >= headLines || len(t) > 500 {
			continue
		}
		r := first(introduced.FindStringSubmatch(t))
		if r >= 0 && rank >= 0 && r != rank {
			return -1
		}
		rank = max(rank, r)
	}
	return rank
}
