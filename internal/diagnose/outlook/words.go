package outlook

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// InEnd reports whether a text is the title or the place of an exception that is raised while a program shuts down, in
// threads and objects that outlive its main part.
func InEnd(t string) bool { return afterEnd.MatchString(t) }

// Fatal reports whether a line announces an error with which its program ends.
func Fatal(t string) bool { return fatalWord.MatchString(t) }

// Logged reports whether a line is a warning or an error in the default format of Python's logging, as in
// "ERROR:root:no such file".
func Logged(t string) bool { return logged.MatchString(t) }

// Records reports whether a line, above an exception, shows that the program has caught the exception: the line is a
// log record, or the heading of a list of errors that the program has caught.
func Records(t string) bool {
	return logged.MatchString(t) || logRecord.MatchString(t) || listed.MatchString(t)
}

var (
	afterEnd  = textmatch.New(`cannot schedule new futures after|Event loop is closed|interpreter shutdown|active exception|destroy_process_group|weakly-referenced object|_shutdown\b|in close$|in __del__$|sys\.meta_path is None|(?i:\b(?:send (?:the )?mail|e-?mail|slack|notif(?:y|ication)\w*|webhook|telegram|telemetry|pushgateway)\b)|Stream is closed|CommClosedError|"should dump" flag|ClosedChannelException|RejectedExecutionException|\bafter (?:shutdown|close|stop)\b`)
	logged    = textmatch.New(`^(?:ERROR|WARNING|CRITICAL):\w+:`)
	logRecord = textmatch.New(`^\[[WEC] \d{4}-\d\d-\d\d |^\W*(?:\d{2,4}[-/.]\d\d[-/.T ]?\d|\d\d:\d\d:\d\d).{0,60}\b(?:ERRO?R?|WARN(?:ING)?|CRIT(?:ICAL)?|EXCEPTION)\b`)
	listed    = textmatch.New(`(?i)\bfollowing (?:error|exception)s?:?$|\b(?:errors?|exceptions?) (?:was|were) (?:caught|collected|ignored)`)
	fatalWord = textmatch.New(`(?i)\bfatal\b`)
)

// Farewell reports whether a text is about clearing up when the work is over, such as freeing memory, removing files or
// closing connections. A program may do this, or a launcher or service that it uses.
func Farewell(t string) bool { return farewell.MatchString(t) }

var farewell = textmatch.New(`(?i)\b(?:shm_)?un-?link(?:ing|ed)?\b|\brm(?:tree|dir)\b|_?clean(?:ing)?[ _-]?up\b|_?finali[sz](?:e|er|ers|ing|ation)\b|_?at_?exit\b|\b(?:at|on) (?:exit|close|shutdown)\b|\btear(?:ing)?[ _-]?down\b|\bshut(?:ting)?[ _-]?down\b|\bdisconnect\w*|\b(?:de|un)-?register\w*|\b(?:close|closing) (?:the )?(?:\w+ )?(?:connection|socket|session|channel|client|pool|stream)s?\b|\b(?:not|never|un)[ -]?(?:freed|released|closed)\b|\bleak(?:s|ed|ing)?\b|\b(?:could ?n[o']t|cannot|can't|failed to|unable to) (?:remove|delete|free|release|destroy)\b|\balready (?:complete|finished|ended|closed|gone|stopped|exited|terminated)\b|\badministrator command\b|\bop heartbeat_worker\b|Stream is closed|\b_bootstrap_inner\b|\*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*$|\[\S+\] (?:PMIX|PRTE|ORTE) ERROR\b|__del__|\bCancelledError\b`)

// sigterm matches a report that a worker was asked to end.
var sigterm = textmatch.New(`(?i)\bexit ?code:? -15\b|signal(?: |: )15\b|\bSIGTERM\b`)

// Sigterm reports whether a line is a report that a worker was asked to end.
func Sigterm(t string) bool { return sigterm.MatchString(t) }

// Tallies reports whether a line only counts what has happened until then, as a monitor does from time to time.
func Tallies(t string) bool { return tallies.MatchString(t) }

var tallies = textmatch.New(`\(raylet\).* \d+ Workers (?:killed due to memory|\(tasks / actors\) killed)`)

// Warns reports whether a line is a warning, or Python's message about an exception that was raised while Python shut
// down.
func Warns(t string) bool {
	level, _ := message.Record(t)
	return level == message.Warning || len(t) < longLine && warns.MatchString(t)
}

var warns = textmatch.New(`^(?i:\W*warning\b|\[W|W\d{4} |.*\bWARN(?:ING)?\b)|^Exception ignored in|^(?:\s+)?(?:Invoking stop|Successfully stopped|.*\bdestroy_process_group\(\) was not called)`)

// Stops reports whether a line is a message with which a program says that it stops.
func Stops(t string) bool { return stops.MatchString(t) }

// Ends reports whether a line has a word with which a program says that it does not go on.
func Ends(t string) bool { return ends.MatchString(t) }

// StopCode reports whether a line tells how a program ended that was stopped early: with a code other than 0, by
// SIGTERM or SIGKILL, or with a status such as "pruned".
func StopCode(t string) bool { return stopCode.MatchString(t) }

var (
	stops    = textmatch.New(`(?i)^\W*(?:error )?stop\b|\bfatal\b|\baborting\b`)
	ends     = textmatch.New(`(?i)\b(?:stopp\w+|abort\w*|exit\w*|terminat\w+|quit\w*|giv(?:ing|es?|en) up|cannot (?:go on|continue)|killed|died)\b`)
	stopCode = textmatch.New(`(?i)\bexit(?:ed|s)?(?: with)?(?: code| status)?\W{1,3}[1-9]\d{0,2}\b|\b(?:SIGTERM|SIGKILL|signal (?:9|15))\b|\bstatus\W{1,3}(?:stopped|pruned|killed|terminated|cancel\w+)\b`)
)

// Ordinary reports whether a line is output of a program that goes on, and not of one that ends.
func Ordinary(text string) bool {
	if text == "" {
		return false
	}
	for _, head := range [...]string{"  ", "\t", "frame #", "#", "=", "-", "goroutine ", "note:", "Exception raised from", "[W", "[E", "[I", "***"} {
		if strings.HasPrefix(text, head) {
			return false
		}
	}
	return !strings.Contains(text, " NCCL INFO ") && !strings.Contains(text, " NCCL WARN ")
}

var mixedWords = textmatch.New(`\[rank\d+\]|\blocal_rank: \d|torch\.distributed\.(?:elastic|run|launch)|\bmpirun\b|\bmpiexec\b|\bprterun\b|^srun: |MPI_ABORT|\b(?:ORTE|PRTE) (?:has|was)\b|\bMPI_Abort|BAD TERMINATION|\[Rank \d+\]|^\*{5}|\bworld[_ ]size\b\W{0,3}(?:[2-9]|\d\d)`)

// Mixes reports whether a log has the output of several processes. It is meant for a log whose rank is not known.
func Mixes(text []string) bool {
	return slices.ContainsFunc(text, func(t string) bool {
		return len(t) < 400 && strings.ContainsAny(t, "_[.:") && mixedWords.MatchString(t)
	})
}

// Restarts reports whether a line says that a step is tried again after it has failed.
func Restarts(t string) bool { return restartWords.MatchString(t) }

var restartWords = textmatch.New(`(?i)\b(?:re-?try\w*|re-?start\w*|re-?submit\w*|re-?run\w*|re-?queu\w*|re-?execut\w*|again)\b`)

// OfScript reports whether a line comes from the script that has started a program, and says that the script ends or
// clears up. It returns false for a line that says that nothing failed.
func OfScript(t string) bool { return ofScript.MatchString(t) && !zeroFailed.MatchString(t) }

var ofScript = textmatch.New(`(?i)^\W*(?:\w+ ){0,2}[\w./-]+\.(?:sh|bash|slurm|sbatch|pbs|lsf)\b|\b(?:job step|script|wrapper|(?:job|step|task) (?:is )?(?:done|finished|ended|completed?))\b|` +
	`^\W*(?:clean(?:ing|ed)?[ -]?up|cop(?:y|ied|ying)|logs?|scratch|(?:pro|epi)logu?e?|archiv\w*|post-?process\w*|stag(?:e|ed|ing)[ -]?out|backing up|backup|upload(?:ing)? (?:of )?logs?)\b|` +
	`^\W*(?:finished|ended|done|completed|end)\b\W*(?:at |on )?(?:mon|tue|wed|thu|fri|sat|sun|\d{4}-\d\d|\d\d?:\d\d)`)

// shutDown matches what Kubernetes says of a node that it shuts down.
var shutDown = textmatch.New(`NodeShutdown|[Nn]ode is shutting down|TerminationByKubelet`)

// ShutsDown reports whether a text says that Kubernetes shuts a node down. A node that is gone does not count.
func ShutsDown(t string) bool { return shutDown.MatchString(t) }
