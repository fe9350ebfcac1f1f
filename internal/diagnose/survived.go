package diagnose

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/pytrace"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Of logs alone it is not known how the ranks ended. These patterns tell from what follows a sign of failure whether
// the program survived it.
var (
	// completion is a line with which a program says that its work is done.
	completion = textmatch.New(`(?i)\b(?:training|train|run|evaluation|eval|inference|benchmark|simulation|calculation|analysis|pipeline|pretraining|fine-?tuning|experiment|suite|sweep|search|conversion|generation|all(?: \w+){0,2} (?:ranks?|tests?|steps?|epochs?|tasks?|checks?|passes|files|jobs|checkpoints?|chunks?|shards?|samples?))\b.{0,40}\b(?:completed?|finished|done|succeeded|successful(?:ly)?|passed|ok|over|written)\b|` +
		`\b(?:completed|finished|terminated|ended) (?:successfully|normally|cleanly|without errors?|ok)|\bsuccessfully (?:completed|finished|ended|trained|saved|wrote|written)|` +
		`\b(?:saved?|wrote|written|exported|uploaded|stored)\b.{0,80}\b(?:final|best|model|weights|results?|metrics|output|report|artifacts?|predictions|\w+\.(?:pth?|ckpt|npz?|h5|onnx|bin|safetensors|csv|json|parquet|txt))\b|` +
		`\b(?:final|best|model|weights|results?|metrics|output|report|predictions)\b.{0,60}\b(?:saved|written|exported|uploaded|stored)\b|\| saved \||` +
		`\b(?:final|best|test|val(?:idation)?|overall)[ _-](?:\w+[ _-]){0,2}(?:acc(?:uracy)?|loss|f1|score|perplexity|ppl|auc|rmse|mae|bleu|energy|reward|throughput|trial|params?)\b\W{0,4}[-+\d{]|` +
		`^\s*=+ .*\b\d+ passed\b.*=+\s*$|^OK \(\d+ tests?|^OK$|\b0 failed\b|^\s*no errors\s*$|\bresult: pass|\bPASSED\b|\bJOB DONE\b|\bconvergence (?:has been )?(?:achieved|reached)\b|\bconverged\b|^total time:? .*\bsteps?\b|\breached max_steps\b|\bnormal termination\b|\bjob (?:completed|succeeded|done)\b`)
	// epilogue is what scripts and programs also print after a failure.
	epilogue = textmatch.New(`(?i)^\W*(?:done|finished|success|completed|all done|bye|ok|end of (?:run|job|program|simulation|output)|exiting(?: normally)?|the end)\b\W*(?:at .*|on .*|in .*|:? .{0,40})?$|` +
		`\b(?:total|elapsed|wall|walltime|wall-clock|training|run|running|execution)[ _-]?(?:wall[ _-]?)?(?:time|clock|elapsed)\b.{0,20}\d|^real\s+\d+m|\b(?:job|script|step|\w+) (?:done|finished|ended|completed) at\b|^\W*\w+ done\.?$`)
	// zeroExit says that a process ended with code 0.
	zeroExit = textmatch.New(`(?i)\bexit(?:ed)?(?: with)?(?: |_|-)?(?:code|status|value)?\W{0,3}0\b(?:[^.:\d]|$)|\b(?:rc|return ?code|status)\W{0,3}0\b(?:[^.:\d]|$)|WorkerState\.SUCCEEDED|worker group successfully finished|\bState: COMPLETED\b|^Status:\s+Succeeded|\bSucceeded\b.*\bReason: Completed|Reason:\s+Completed|ExitCode=0:0`)
	// incomplete makes a line no such line.
	incomplete = textmatch.New(`(?i)\b(?:not|never|fail(?:ed|ure|s)?|error|errors|abort\w*|unable|cannot|can't|could not|couldn't|incomplete|unsuccessful\w*|without completing|before|until|killed|cancell?ed|traceback|timed? ?out|exceeded|terminating|will be|waiting|resum\w+|warm-?up|loaded|loading|stage \d+ of)\b`)
	zeroFailed = textmatch.New(`(?i)\b(?:0|no|zero|without) (?:\w+ )?(?:fail\w*|errors?)\b|errors?\W{1,3}0\b`)
	// counted is "9 of 9 chunks" or "step 100/100".
	counted = textmatch.New(`(?:^|[\s(\[|])(\d+) ?(?:/|of) ?(\d+)(?:$|[\s)\]|,;:])`)
	// badExit says that a process, the script or the job failed.
	badExit = textmatch.New(`(?i)\bexit(?:ed|ing)?(?: with)?(?: |_|-)?(?:code|status|value)?\W{1,3}-?[1-9]\d{0,2}\b(?:[^.:\d%]|$)|\b(?:rc|ret|return[ _]?code|status|exit|code)\b["']?\W{1,3}-?[1-9]\d{0,2}\b(?:[^.:\d%]|$)|\bnon-?zero exit|\b(?:job|run|training|script|stage|step|rule|command|pipeline|process|task|workflow|trial|program|container|pod|test)\b.{0,40}\b(?:has )?(?:failed|FAILED|died|crashed)\b|^FAILED|\bJOB FAILED\b|State: FAILED|Status:\s+Failed|\bexiting because\b|WorkerState\.FAILED|^make: \*\*\*|\bgiving up\b|ExitCode=[1-9]`)
	// workUnit is a part of the work that is counted.
	workUnit = textmatch.New(`(?i)^\s*\[?\d+\]?[:\s]\s*\S*\d|\b(?:trial|request|chunk|shard|sample|task|item|file|fold|round|generation|game|episode|query|record|frame|block|part|page|cycle|image|document|case|point)s? #?\d+\b`)
	tries    = textmatch.New(`(?i)\b(?:attempt|try|tries|retry|retries)\b`)
	// recovery says that the program goes on in another way.
	recovery = textmatch.New(`(?i)\bretry\w*|\bretries\b|\btry(?:ing)? again|\bskip\w*|\bignor\w+|\binstead\b|\bfall(?:ing|s)? ?back|\bcontinu\w+|\bgoing on\b|\bhedging\b|\brestart\w*|started again|\bresubmit\w*|\brecomput\w*|\breconnect\w*|\brecover\w*|\bresum\w+|\bbacking off|\bbackoff\b|\battempt \d|\boptional\b|\bnon-?fatal\b|\bhandled\b|\bcaught (?:and|exception|error)|exception caught\b|\brollback\b|\brolling back|\breduc\w+ (?:the )?batch|\bhalv\w+|\b(?:as )?(?:expected|wanted|intended|planned)\b|\bon purpose|\bintentional|\bdeliberate|\bsimulated\b|\bnegative test|\bshould fail|\bwaiting\b|\bwait(?:ed|s)? for\b|\bharmless\b|\banyway\b|\busing (?:the )?(?:default|cpu|cached|local)|\bwithout it\b|\bper worker\b.*\bretrying|\bpruned\b`)
	givesUp  = textmatch.New(`(?i)caught signal|\bfork: retry|chdir to|\bgiv(?:ing|es?|en) up|\bno more (?:retries|attempts)|\bretries (?:are )?(?:exhausted|exceeded)|\bmax\w* (?:retries|attempts) (?:reached|exceeded)|\bnot (?:retry|continu|recover)|\bcannot (?:continue|recover)|\bunable to (?:continue|recover)|\babort|\bexiting|\bretries left: 0|\bfatal\b|\b0 attempts left`)
	// account is a line in which a batch system accounts for a job that has ended.
	account = textmatch.New(`(?i)^(?:Begin|End) (?:PBS )?(?:prologue|epilogue)|^(?:Requested resources|Actual resources)|^\s+(?:nodes|cput|mem|vmem|walltime|ncpus)=|^Resource usage summary|^\s+(?:CPU time|Max Memory|Average Memory|Total Requested Memory|Delta Memory|Max Swap|Max Processes|Max Threads|Run time|Turnaround time) :|^\s*(?:user|sys)\s+\d+m|^total \d+$|^[-dl][rwx-]{9}[.+]? |^\+ |^\S*epilog\S*\b`)
	// asWanted says that a failure is part of a test.
	asWanted = textmatch.New(`(?i)\bas (?:expected|wanted|intended|planned|it should)|\bexpected (?:failure|error|to fail|exception)|\bxfail|\bon purpose|\bintentional|\bdeliberate`)
	// afterEnd are exceptions of threads and objects that outlive their program.
	afterEnd = textmatch.New(`cannot schedule new futures after|Event loop is closed|interpreter shutdown|active exception|destroy_process_group|weakly-referenced object|_shutdown\b|in close$`)
)

// completes reports whether a line says that work is done.
func completes(t string) bool {
	if len(t) > 400 || message.Teardown.MatchString(t) {
		return false
	}
	if message.FortranStop.MatchString(t) {
		return true
	}
	if incomplete.MatchString(t) && !zeroFailed.MatchString(t) {
		return false
	}
	return completion.MatchString(t)
}

// counts reports whether a line says that all of a number of things are done.
func counts(t string) bool {
	m := counted.FindStringSubmatch(t)
	return m != nil && m[1] == m[2] && m[1] != "1" && m[1] != "0" && !incomplete.MatchString(t) && !tries.MatchString(t)
}

// How many lines show that the program went on after a sign of failure: lines with a growing count; such lines in
// the log of several ranks, which may be those of other ranks; lines before an epilogue.
const (
	goneOn      = 3
	othersGoOn  = 40
	ordinaryRun = 3
	plainRun    = 8 // ordinary lines after a plain line of a log that does not say that the job failed
	nearby      = 3 // lines between a sign and the words that say how the program goes on
)

// mark is what a line says of how its program goes on.
type mark uint16

const (
	markAside    mark = 1 << iota // no word of the program: empty, part of a sign, of a launcher
	markLong                      // too long to say anything
	markDone                      // the work is done, or a process ended with code 0
	markAll                       // all of a number of things are done
	markZero                      // a process ended with code 0
	markEpilogue                  // what is printed after a failure, too
	markRecovery                  // the program goes on in another way
	markAdvance                   // a count grows
	markError                     // an error is announced
	markBad                       // the script or job failed
)

// marks returns the mark of each line. They are found when they are first needed.
func (s *stream) marks() []mark {
	if s.marked != nil {
		return s.marked
	}
	s.marked = make([]mark, len(s.text))
	for _, g := range s.signs {
		for i := g.from; i < g.to; i++ {
			s.marked[i] = markAside
		}
	}
	for i, t := range s.text {
		m := &s.marked[i]
		switch {
		case *m != 0:
		case t == "" || message.Teardown.MatchString(t) || message.Separator(t) || account.MatchString(t) || strings.Contains(t, "(+0x") || strings.Contains(t, "[0x"):
			*m = markAside
		case len(t) > 400:
			*m = markLong
		case zeroExit.MatchString(t):
			*m = markDone | markZero
		case badExit.MatchString(t) && !zeroFailed.MatchString(t) && !recovers(t):
			*m = markBad
		case completes(t):
			*m = markDone
		case counts(t):
			*m = markAll
		case epilogue.MatchString(t):
			*m = markEpilogue
		default:
			if recovers(t) {
				*m |= markRecovery
			}
			if message.Announces(t) {
				*m |= markError
			} else if message.Advance.MatchString(t) || workUnit.MatchString(t) {
				*m |= markAdvance
			}
		}
	}
	return s.marked
}

// survived reports whether the program that gave a sign of failure went on with its work, by what follows in the
// same log.
func (s *stream) survived(g *sign) bool {
	marks := s.marks()
	// Where nothing was counted before, what follows may have been printed before, and kept in a buffer.
	buffered := !slices.ContainsFunc(marks[:g.from], func(m mark) bool { return m&markAdvance != 0 })
	ended := s.reportedEnd()
	advanced, between, recovered := 0, 0, g.plain && recovers(s.text[g.at])
	if g.from > 0 && marks[g.from-1]&markRecovery != 0 {
		recovered = recovered || troubled.MatchString(s.text[g.from-1])
	}
	for i := g.to; i < len(s.text); i++ {
		m := marks[i]
		switch {
		case m&markAside != 0:
			continue
		case m&(markDone|markAll) != 0:
			if !s.mixed || i > ended {
				return true
			}
			continue
		case m&markBad != 0:
			return false
		case m&markEpilogue != 0:
			if !s.mixed && between >= ordinaryRun || recovered || g.plain && (g.weak || g.rule.Is(rules.Generic)) {
				return true
			}
			continue
		case m&markRecovery != 0 && i <= g.to+nearby:
			recovered = true
			continue
		}
		if s.plain[i+1] > s.plain[i] {
			between++
		}
		if recovered && m&(markError|markLong) == 0 {
			return true
		}
		if g.plain && (g.weak || g.rule.Is(rules.Cascade|rules.Generic)) && between >= plainRun && !g.rule.Is(rules.Verdict) && !s.failed() {
			return true
		}
		if m&markAdvance != 0 && g.report == nil && !g.rule.Is(rules.Mute) {
			if advanced++; advanced >= goneOn && !s.mixed && !buffered || advanced >= othersGoOn {
				return true
			}
		}
	}
	return s.common != nil && s.common.doneAfter(s.lines[g.at].Line)
}

// reportedEnd returns the line of the last report that a rank failed, or -1.
func (s *stream) reportedEnd() int {
	for _, g := range slices.Backward(s.signs) {
		if g.report != nil || g.rule.Is(rules.Mute) {
			return g.at
		}
	}
	return -1
}

// doneAfter reports whether a line after that number says that the work is done.
func (s *stream) doneAfter(number int) bool {
	for i, m := range s.marks() {
		if m&markDone != 0 && s.lines[i].Line > number {
			return true
		}
	}
	return false
}

// troubled makes a line before a sign one about it.
var troubled = textmatch.New(`(?i)\bwarn|\berror|\bfail|\bexception|\bcaught|\bcould not|\bcannot|\bunable|\btimed out|\blost|\bdied`)

func recovers(t string) bool {
	return len(t) < 400 && !pytrace.Harmless(t) && (asWanted.MatchString(t) || recovery.MatchString(t) && !givesUp.MatchString(t))
}

// ended returns the line after the one with which a log says that its work is done, or -1.
func (s *stream) ended() int {
	for i, m := range slices.Backward(s.marks()) {
		if m&markDone != 0 {
			return i + 1
		}
	}
	return -1
}

// done reports whether the logs of ranks say that their work is done.
func done(members []*member) bool {
	return slices.ContainsFunc(members, func(m *member) bool {
		return slices.ContainsFunc(m.streams, func(s *stream) bool { return s.ended() >= 0 })
	})
}

// afterwards reports whether a sign is one that programs give in their end, after their work is done.
func (s *stream) afterwards(g *sign, ended int) bool {
	if ended < 0 || g.from < ended {
		return false
	}
	return s.marks()[ended-1]&markZero != 0 || g.rule.Is(rules.Cascade) || g.weak || afterEnd.MatchString(g.title) || afterEnd.MatchString(g.where) ||
		g.rule.Category == job.CollectiveTimeout || g.rule.Category == job.NetworkError || g.rule.Category == job.Hang
}
