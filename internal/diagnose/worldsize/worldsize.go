// Package worldsize finds out from the output of a program how many ranks the program asks for.
package worldsize

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/job"
)

// Find returns the last line in which a program asks for more ranks than its gang had, and reports
// whether there is such a line.
func Find(e job.Evidence) (job.Line, bool) {
	lines := e.Lines
	if len(lines) == 0 {
		lines = e.Outcome.Lines
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if _, ok := Wanted(logtext.Plain(lines[i].Text), e.Ranks); ok {
			return lines[i], true
		}
	}
	return job.Line{}, false
}

// Request is the number of ranks that a program asks for.
type Request struct {
	Ranks int    // 0 if the program does not name a number
	Least bool   // the program also runs with more ranks
	Text  string // the words with which the program asks
}

// Wanted returns how many ranks a line asks for. The second result is true if that is more than ranks.
func Wanted(text string, ranks int) (Request, bool) {
	if len(text) > 4<<10 || !mentions(text) {
		return Request{}, false
	}
	for _, want := range wants {
		m := want.FindStringSubmatch(text)
		if m == nil || one(m) {
			continue
		}
		w := Request{Text: m[0]}
		for _, g := range m[1:] {
			if w.Ranks = number(g); w.Ranks > 0 {
				break
			}
		}
		if w.Least = least.MatchString(m[0]); above.MatchString(m[0]) && w.Ranks > 0 {
			w.Ranks, w.Least = w.Ranks+1, true
		}
		if w.Ranks > ranks || w.Ranks == 0 && ranks <= 1 {
			return w, true
		}
	}
	if ranks <= 1 {
		for _, complaint := range ofOne {
			if complaint.MatchString(text) {
				return Request{Text: text}, true
			}
		}
	}
	return Request{}, false
}

var (
	least = textmatch.New(`(?i)at least|minimum|>=|divi|multiple of|or more`)
	above = textmatch.New(`(?i)(?:more|greater|larger) than|>\s*\d`)
)

// number parses a number of ranks, in digits or as a word. It returns 0 if text is none.
func number(text string) int {
	for i, word := range [...]string{"two", "three", "four", "five", "six", "seven", "eight"} {
		if strings.EqualFold(text, word) {
			return i + 2
		}
	}
	if strings.EqualFold(text, "sixteen") {
		return 16
	}
	return logtext.Number(text)
}

// mentions reports whether a text is about ranks at all.
func mentions(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"world", "rank", "process", "nproc", "-np", "mpi", "comm", "worker", "gpus", "cpus", "procs", "tasks", "parallel", "replica", "devices"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// one reports whether the number asked for is 1 or 0.
func one(groups []string) bool {
	for _, g := range groups[1:] {
		if g == "1" || g == "0" || strings.EqualFold(g, "one") {
			return true
		}
	}
	return false
}

const (
	many  = `(?:at least |exactly |more than |a multiple of |an even number of |precisely |a minimum of )?(\d+|one|two|three|four|six|eight|sixteen|multiple|several|an even number of|more)`
	units = `(?:mpi |parallel |distributed |gpu |worker )?(?:processes|procs|process(?:or)?s?|ranks?|workers?|gpus?|cpus|tasks|replicas|devices)`
	world = `(?:world[ _-]?size|comm(?:unicator)?[ _]size|number of (?:mpi )?(?:processes|procs|ranks|processors|tasks|cpus|workers)|num[_ ]?(?:procs|processes|ranks|tasks|workers)|nprocs?|np)`
)

// wants has the forms of requests for ranks. The first group that is a number is the number of ranks.
var wants = []*textmatch.Pattern{
	textmatch.New(`(?i)\b` + world + `\b[^.;]{0,24}?\b(?:must|should|has to|needs? to|ought to|expected|required)\b (?:to )?(?:be |equal |have |divide )?(?:at least |exactly |more than |>=? ?|==? ?|equal to |divisible by |a multiple of )?(\d+|two|three|four|eight|even|a power|divisible|a multiple|greater|larger|more)`),
	textmatch.New(`(?i)\b(?:requires?|needs?|wants|expects?|must (?:be )?(?:run|launched|started|executed|called|invoked|use|have)(?: (?:with|on|using|by|under))?|only works with|only supports|(?:run|launch|start)(?:ed)? (?:it )?(?:with|on|using)|works only with|at least|expected)\b (?:a |an )?(?:total of )?` + many + `\s+` + units),
	textmatch.New(`(?i)(?:mpirun|mpiexec|srun|torchrun|torch\.distributed\.(?:launch|run)|horovodrun|deepspeed|accelerate launch)\b[^.]{0,60}?(?: -np?| --np| --nproc[-_]per[-_]node| --num[-_]processes| --num_gpus| --ntasks| -w)[ =]*(\d+|<?n>?|\$?\{?\w+\}?)`),
	textmatch.New(`(?i)\bexpected (\d+) (?:ranks|processes|workers),? (?:but )?(?:got|found|have) 1\b`),
}

// ofOne has the forms of complaints of a program that was started with one rank.
var ofOne = []*textmatch.Pattern{
	textmatch.New(`(?i)invalid world[ _]?size:?\s*\(?1\b`),
	textmatch.New(`(?i)\bworld[ _]?size \(1\) (?:is not|must be|should be|is smaller|is less|isn't)`),
	textmatch.New(`(?i)is (?:greater|larger|more) than (?:the )?` + world + ` ?[(:]?\s*1\b`),
	textmatch.New(`(?i)` + world + `\s*(?:is|=|==|of|:)?\s*\(?1\)?[ ,]+(?:is not divisible|not divisible|which is not|but|is too small|is less than|is smaller than|is not a multiple|cannot be)`),
	textmatch.New(`(?i)\b(?:tensor|pipeline|data|model|sequence|expert|context)[ _-]?(?:model[ _-])?parallel(?:[ _-]?size|ism)?\b[^.]{0,80}(?:world[ _]?size|number of (?:gpus|ranks|processes))[^.]{0,20}\b1\b`),
	textmatch.New(`(?i)(?:cannot|can't|can not|not|don't) (?:be )?run (?:on |with )?(?:a |only |just )?(?:single|one|1) (?:process|rank|processor|gpu|mpi process)`),
	textmatch.New(`(?i)(?:more than|at least two|greater than) (?:one|1|two|2)? ?(?:process|rank|processor|mpi task)`),
}

// otherUnits matches words for things of which one rank may have several.
var otherUnits = textmatch.New(`(?i)\b(?:gpus?|cpus?|devices|workers?|replicas?|tasks)\b`)

// example matches a line that shows how to start a program, with any number of ranks.
var example = textmatch.New(`(?i)\busage\b|\bexample:|\be\.g\.`)

// Doubtful reports whether the words of a line that ask for a number of ranks may mean something else. They may ask for
// GPUs or workers, of which one rank may have several. Or the line only shows an example of how to start a program.
func Doubtful(words, line string) bool {
	return otherUnits.MatchString(words) || example.MatchString(line)
}
