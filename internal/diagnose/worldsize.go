package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/job"
)

// WorldSize returns the line in which a program that was tried with one rank
// says that it wants more, and whether there is one.
func WorldSize(e job.Evidence) (job.Line, bool) {
	if e.Ranks > 1 {
		return job.Line{}, false
	}
	lines := e.Lines
	if len(lines) == 0 {
		lines = e.Outcome.Lines
	}
	for i := len(lines) - 1; i >= 0; i-- {
		text := plainText(lines[i].Text)
		if len(text) > 4<<10 || !mentions(text) {
			continue
		}
		for _, want := range wants {
			if m := want.FindStringSubmatch(text); m != nil && !one(m) {
				return lines[i], true
			}
		}
	}
	return job.Line{}, false
}

// mentions reports whether a text speaks of ranks at all.
func mentions(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"world", "rank", "process", "nproc", "-np", "mpi", "comm", "worker", "gpus", "cpus", "procs", "tasks", "parallel", "replica", "devices"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// one reports whether what is wanted is 1 or 0 of something.
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

var wants = []interface {
	FindStringSubmatch(string) []string
}{
	re(`(?i)\b` + world + `\b[^.;]{0,24}?\b(?:must|should|has to|needs? to|ought to|expected|required)\b (?:to )?(?:be |equal |have |divide )?(?:at least |exactly |more than |>=? ?|==? ?|equal to |divisible by |a multiple of )?(\d+|two|three|four|eight|even|a power|divisible|a multiple|greater|larger|more)`),
	re(`(?i)\b(?:requires?|needs?|wants|expects?|must (?:be )?(?:run|launched|started|executed|called|invoked|use|have)(?: (?:with|on|using|by|under))?|only works with|only supports|(?:run|launch|start)(?:ed)? (?:it )?(?:with|on|using)|works only with|at least|expected)\b (?:a |an )?(?:total of )?` + many + `\s+` + units),
	re(`(?i)invalid world[ _]?size:?\s*\(?1\b`),
	re(`(?i)\bworld[ _]?size \(1\) (?:is not|must be|should be|is smaller|is less|isn't)`),
	re(`(?i)is (?:greater|larger|more) than (?:the )?` + world + ` ?[(:]?\s*1\b`),
	re(`(?i)` + world + `\s*(?:is|=|==|of|:)?\s*\(?1\)?[ ,]+(?:is not divisible|not divisible|which is not|but|is too small|is less than|is smaller than|is not a multiple|cannot be)`),
	re(`(?i)\b(?:tensor|pipeline|data|model|sequence|expert|context)[ _-]?(?:model[ _-])?parallel(?:[ _-]?size|ism)?\b[^.]{0,80}(?:world[ _]?size|number of (?:gpus|ranks|processes))[^.]{0,20}\b1\b`),
	re(`(?i)(?:mpirun|mpiexec|srun|torchrun|torch\.distributed\.(?:launch|run)|horovodrun|deepspeed|accelerate launch)\b[^.]{0,60}?(?: -np?| --np| --nproc[-_]per[-_]node| --num[-_]processes| --num_gpus| --ntasks| -w)[ =]*(\d+|<?n>?|\$?\{?\w+\}?)`),
	re(`(?i)(?:cannot|can't|can not|not|don't) (?:be )?run (?:on |with )?(?:a |only |just )?(?:single|one|1) (?:process|rank|processor|gpu|mpi process)`),
	re(`(?i)(?:more than|at least two|greater than) (?:one|1|two|2)? ?(?:process|rank|processor|mpi task)`),
	re(`(?i)\bexpected (\d+) (?:ranks|processes|workers),? (?:but )?(?:got|found|have) 1\b`),
}
