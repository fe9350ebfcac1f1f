// Package culprit finds the rank to which a sign of failure in a log belongs. It uses the words of the sign and of the
// lines beside it.
package culprit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/endreport"
	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Sign is a sign of failure in a log.
type Sign struct {
	roster.Log
	Title        string
	From, At, To int // its first line, its decisive line, the line after its last
}

// near is how many lines before or after a sign may name its rank.
const near = 3

var (
	// trouble matches a word of a line that tells of a failure.
	trouble = textmatch.New(`(?i)\b(?:nan|error|critical|fatal|fail\w*|abort\w*|diverg\w*)\b`)
	// severe matches such a word, except for words that may be the name of a quantity, such as "error" in lower case.
	severe = textmatch.New(`(?i:\b(?:nan|critical|fatal|fail\w*|abort\w*|diverg\w*)\b)|\bERROR\b|Called CmiAbort`)
	// elsewhere matches the line with which PyTorch marks the exception of another rank.
	elsewhere = textmatch.New(`^Traceback \(most recent call last\): \(RANK (\d{1,6})\)`)
	// failedRanks matches the words with which an exception that PyTorch raises on all ranks names the ranks that
	// failed.
	failedRanks = textmatch.New(`CheckpointException ranks:dict_keys\(\[(\d{1,6})`)
	// onlyRank matches a condition that holds on one rank only.
	onlyRank = textmatch.New(`(?i)(?:\b|_)(?:rank|if r|me|myid|my_?rank|proc_?id|pe)(?:\(\))? *== *["']?(\d{1,6})\b|\b(\d{1,6}) *== *(?:\w+\.)*(?:get_)?rank\b`)
	// fullGPU matches the name of the GPU whose memory was full.
	fullGPU = textmatch.New(`\bGPU[ _](\d{1,3})(?:_bfc)?\b`)
	// described matches the beginning of the description that kubectl prints of a pod.
	described = textmatch.New(`^Name: +(\S+)$|\bdescribe pods?[ /](\S+)`)
	// headRank matches the line with which GROMACS names the rank above its message.
	headRank = textmatch.New(`^MPI rank: +(\d{1,6}) `)
	// device matches a line in which NCCL names the host and the GPU of a process. Each rank uses the GPU with its
	// local rank as number.
	device = textmatch.New(`^([\w.-]+):\d+:\d+ \[(\d{1,3})\] .*NCCL WARN`)
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

// Named returns the rank from which a sign says that it comes, or -1. The lines just above the sign may say so, too.
func (s Sign) Named(census *roster.Census) int {
	if r := roster.Own(s.Title); r >= 0 {
		return r
	}
	for i := s.At; i < s.To; i++ {
		if r := roster.Printed(s.Lines[i].Text); r >= 0 {
			return r
		}
	}
	if r := roster.Own(s.Lines[s.From].Text); r >= 0 {
		return r
	}
	for i := s.From; i >= max(0, s.From-near); i-- {
		if m := headRank.FindStringSubmatch(s.Text[i]); m != nil {
			return logtext.Number(m[1])
		}
	}
	if roster.Together(s.Text[s.At]) {
		return 0
	}
	if m := device.FindStringSubmatch(s.Lines[s.At].Text); m != nil {
		if r := census.OfPID(roster.Printer(s.Lines[s.At].Text)); r >= 0 {
			return r
		}
		return max(census.OfHost(m[1]), 0) + logtext.Number(m[2])
	}
	return census.OfUnit(s.Title)
}

// OfPID looks for a PID in the lines of the sign and in the line after the sign. It returns the rank of that process,
// or -1.
func (s Sign) OfPID(census *roster.Census) int {
	for _, t := range append([]string{s.Title}, s.Text[s.From:min(len(s.Text), s.To+1)]...) {
		if r := census.OfPID(roster.PID(t)); r >= 0 {
			return r
		}
	}
	return -1
}

// Beside returns the rank from which a sign, or one of the nearest lines above or below the sign, says that it comes,
// or -1. In the sign, Beside skips the lines before the decisive line (Text[At]), because other ranks may have printed
// those. It does not skip headings that begin with "-- ". Of the n lines just above the sign, it uses any line. Of the
// lines further above, and of those below the sign, it uses only lines that report a failure. A progress line above the
// sign (such as "step 12: error 0.1") counts only if it reports a severe failure. Beside uses no stack frames above the
// sign.
func (s Sign) Beside(n int) int {
	for i := s.To - 1; i >= max(0, s.From-near); i-- {
		t := s.Text[i]
		// Other ranks may have printed the lines between the first line and the decisive line.
		between := i >= s.From && i < s.At && !strings.HasPrefix(t, "-- ")
		told := trouble.MatchString(t) || severe.MatchString(t)
		if message.Advance.MatchString(t) { // the line may name an error that it only measures
			told = severe.MatchString(t)
		}
		above := i < s.From && (pytrace.FrameLine.MatchString(t) || (message.Advance.MatchString(t) || i < s.From-n) && !told)
		if between || above {
			continue
		}
		if r := roster.Own(t); r >= 0 {
			return r
		}
	}
	for _, t := range s.Text[s.To:min(len(s.Text), s.To+near)] {
		if trouble.MatchString(t) {
			if r := roster.Own(t); r >= 0 {
				return r
			}
		}
	}
	return -1
}

// longStack is how many lines before a sign Elsewhere looks for the head of its traceback.
const longStack = 60

// Elsewhere returns the rank whose exception a sign shows, if another rank has printed the exception. Otherwise it
// returns -1.
func (s Sign) Elsewhere() int {
	if r := first(failedRanks.FindStringSubmatch(s.Title)); r >= 0 {
		return r
	}
	for i := s.At; i >= max(0, s.At-longStack); i-- {
		if strings.HasPrefix(s.Text[i], "Traceback (most") {
			return first(elsewhere.FindStringSubmatch(s.Text[i]))
		}
	}
	return -1
}

// Source returns the rank for which the code in a traceback tests, as the source line "if rank == 2: raise ..." tests
// for rank 2. It returns -1 if no source line does so. If several do, the last one counts.
func Source(frames string) int {
	for _, f := range slices.Backward(strings.Split(frames, "\n")) {
		if r := first(onlyRank.FindStringSubmatch(f)); r >= 0 {
			return r
		}
	}
	return -1
}

// InTable returns the lowest rank for which torchrun's tables show an error, or -1.
func InTable(logs []roster.Log, title string) int {
	title, _, _ = strings.Cut(title, "\n")
	if title = title[:min(len(title), 100)]; len(title) < 4 {
		return -1
	}
	lowest := -1
	for _, l := range logs {
		for _, f := range endreport.Table(l.Text) {
			if strings.Contains(f.Text, title) && (lowest < 0 || f.Rank < lowest) {
				lowest = f.Rank
			}
		}
	}
	return lowest
}

// LowestGPU returns the lowest GPU whose memory was full. This is also the local rank, because local rank N uses GPU N.
// LowestGPU returns -1 if the text names no GPU, or only GPU 0: a rank that sees a single GPU calls it GPU 0.
func LowestGPU(text []string) int {
	lowest, several := -1, false
	for _, t := range text {
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

// LocalRank returns the rank of which torchrun reports only the local rank, its number on its host. It returns -1 if
// there is none, or if the logs do not show how many ranks the hosts before its host have. If restarted is true, it
// looks only at logs in which torchrun reports several failures.
func LocalRank(logs []roster.Log, restarted bool) int {
	var all roster.Torchrun
	for _, l := range logs {
		var alone roster.Torchrun
		for _, t := range l.Text {
			all.Read(t)
			alone.Read(t)
		}
		if restarted && alone.Restarted() {
			return alone.Rank()
		}
	}
	if restarted {
		return -1
	}
	return all.Rank()
}

// describedLines is how many lines a description of kubectl has at most.
const describedLines = 60

// Pod returns the rank of the pod that a description of Kubernetes is about, or -1. master says whether the job has a
// pod of its own for rank 0.
func (s Sign) Pod(master bool) int {
	for i := s.At; i >= max(0, s.At-describedLines); i-- {
		if m := described.FindStringSubmatch(s.Text[i]); m != nil {
			return roster.Pod("pod/"+cmp.Or(m[1], m[2]), master)
		}
	}
	return -1
}

// longTitle is the length in bytes from which a line is too long to be compared with others.
const longTitle = 1000

// bySignal matches the words with which a launcher names the signal that ended a process. The launcher itself may have
// sent the signals that ended other processes.
var bySignal = textmatch.New(`\bsignal (\d+)\b`)

// Lowest looks for ranks that print a line like the decisive line of the sign in the same log. It returns the lowest
// of them, or the given rank if that is lower. Two lines are alike if they differ only in numbers. If one of them
// names a signal, the other must name the same one. Lowest returns -1 if rank is -1.
func (s Sign) Lowest(rank int, census *roster.Census) int {
	for i, t := range s.Text {
		if rank <= 0 || len(t) >= longTitle || !logtext.Alike(t, s.Text[s.At]) || first(bySignal.FindStringSubmatch(t)) != first(bySignal.FindStringSubmatch(s.Text[s.At])) {
			continue
		}
		r := roster.Printed(s.Lines[i].Text)
		if r < 0 {
			r = census.OfPID(roster.Printer(s.Lines[i].Text))
		}
		for k := i - 1; r < 0 && k >= max(0, i-near); k-- {
			r = first(headRank.FindStringSubmatch(s.Text[k]))
		}
		if r >= 0 {
			rank = min(rank, r)
		}
	}
	return rank
}

// HostAbove returns the host that a line above the sign names, for instance a line of a tool that copies a file to each
// host. It returns "" if no line names a host. known tells which words are hosts.
func (s Sign) HostAbove(known func(string) bool) string {
	for i := s.From - 1; i >= max(0, s.From-near); i-- {
		for _, w := range HostWords(s.Text[i]) {
			if known(w) {
				return w
			}
		}
	}
	return ""
}

// HostWords returns the words of a text that may be the names or addresses of hosts.
func HostWords(text string) []string {
	text = text[:min(len(text), 500)]
	apart := func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-')
	}
	return append(strings.FieldsFunc(text, apart), strings.FieldsFunc(text, func(r rune) bool { return r != '.' && apart(r) })...)
}

// nodeFailure matches the words with which Slurm names the host that failed. The line also names the host that reports
// the failure.
var nodeFailure = textmatch.New(`Node failure on ([\w.-]+)`)

// FailedHost returns the host that Slurm says has failed. It is empty if Slurm does not say so.
func FailedHost(text []string) string {
	for _, t := range text {
		if m := nodeFailure.FindStringSubmatch(t); m != nil {
			return m[1]
		}
	}
	return ""
}

// masterPort matches words of errors about the port on which rank 0 waits for the others.
var masterPort = textmatch.New(`(?i)server socket has failed to|TCPStore|c10d|coordinat(?:or|ion) service|MASTER_PORT`)

// MasterPort reports whether a text is about the port on which rank 0 waits for the others.
func MasterPort(text string) bool { return masterPort.MatchString(text) }

// wholeJob has the signatures of failures of the batch system, of a container or of the job's script, which happen
// before there are ranks.
var wholeJob = []string{"batch-refused", "command-not-found", "container", "build-failed"}

// WholeJob reports whether a sign of a category, with a signature and a title, is about the whole job, and not about a
// rank.
func WholeJob(category job.Category, signature, title string) bool {
	return category == job.Cancelled || category == job.TimeLimit || slices.Contains(wholeJob, signature) ||
		category == job.Preempted && strings.Contains(title, "CANCELLED AT")
}
