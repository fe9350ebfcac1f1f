package outlook

import (
	"regexp"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

// escapes matches the codes for colours that some logs have.
const escapes = `(?:\x1b?\[[\d;]*[mK])*`

// ofJob matches the line with which a batch system, a workflow engine or a service that builds software says that a
// whole job ended well.
var ofJob = textmatch.New(`^` + escapes + `(?:\d{4}-\d\d-\S+ )?(?:##\[section\]|\[Pipeline\] )?(?i:job succeeded|build success(?:ful)?|finished: success|pipeline (?:succeeded|passed)|successfully completed\.|job completed: succeeded|conclusion: success)\W*` + escapes + `$|` +
	`(?i)^\s*exit_status[\s:=]+0\s*$|^\s*(?:job)?_?(?:state|status)\s+(?-i:COMPLETED)\W*$|\bnormal termination \(return value 0\)|\bexit code of 0\b|^\s*(?:final |job |app\w* |workflow |flow |run )?(?:status|state|phase)\s*[:=]\s*["']?(?:succeeded|completed?|finished|success)\b["']?[,.]?$|\bfinal ?(?:app )?status ?[:=] ?succeeded\b|\b(?:pytorch|tf|mpi|xgb|jax|paddle|ray|train|spark)?job \S+ (?:is )?successfully completed\b|\bJobState=COMPLETED\b|^\W*[a-z][a-z _-]*: completed +0:0\W*$|` +
	`^\S+ +0/\d+ +completed +\d+ |^job\.batch/\S+ (?:condition met|completed)|^(?:job|status for job) '\S+'(?: |: )succeeded\b|\bfinished in state completed\b|\bmarking (?:task|run|dag\w*)\b.{0,60}\bas success|\bworkflow\b.{0,60}\b(?:finished|terminal) (?:with )?(?:status|state)\W{1,3}succeeded|\bRUN_SUCCESS\b|` +
	`\bpipeline (?:execution )?completed successfully|\bthis progress looks :\)|\bdagman\b.{0,40}\bexit(?:ed|ing) with status 0\b|\b(?:exit )?(?:codes?|status(?:es)?|rcs?)\W{1,2}(?:0[ ,]+)+0\W*$|\ball \d+ (?:\w+ )?(?:ranks?|workers?|tasks?|process\w*|members?|replicas?|pods?) (?:\w+ )?(?:exited|ended|returned|finished|left) (?:with )?(?:code |status )?0\b`)

// ofTests matches the line with which a tool that runs tests says that all tests have passed. The failures that such a
// log shows above this line are only test data.
var ofTests = textmatch.New(`^100% tests passed,? 0 tests failed out of [1-9]|^\[ +PASSED +\] (?:[1-9]|Ran (\d+)/)|^All tests passed \(\d|^\W*test result: ok\. [1-9]\d* passed; 0 failed|(?i)\btests(?: run)?: [1-9]\d*, failures: 0, errors: 0\b|^\W*[1-9]\d* tests?, 0 failures\b|^\[ FAIL 0 \|.* PASS [1-9]|^# fail +0\b|^\W*(?:unexpected )?fail(?:ed|ures?)?: +0\W*$|^=+ [1-9]\d* passed\b[^=]*=+$|^=+ [1-9]\d* passed,? in `)

// leader matches a line which says that the leading process of a job ended with code 0. Without that process, the
// others have nothing to do.
var leader = textmatch.New(`(?i)^\W*(?:container |service |process )?(?:[\w/]*[-_./])?(?:driver|main|master|head|launcher|chief|trainer|coordinator|controller|leader|manager|client|runner|app)(?:[-_.]\d+)?\s.{0,24}\bexit(?:ed|s)?(?: with)? (?:code |status )?0\b`)

// LeaderLeft reports whether a line says that the process that leads a job ended with code 0. The other processes then
// have nothing left to do.
func LeaderLeft(t string) bool { return len(t) < longLine && leader.MatchString(t) }

// failedTests matches a line of a tool that runs tests which says that a test has failed.
var failedTests = textmatch.New(`^FAIL\b|^--- FAIL|^\[ +FAILED +\]|^not ok \d|^=+ .*\b[1-9]\d* (?:failed|errors?)\b|^test result: FAILED|\*\*\*(?:Failed|Exception|Timeout|Not Run)\b`)

// FailedTest reports whether a line is the result of a test tool, and says that a test has failed.
func FailedTest(t string) bool { return failedTests.MatchString(t) }

// goTests matches the line that the go command prints for a package whose tests have all passed.
var goTests = textmatch.New(`^ok  ?\s*\S+\s+(?:[\d.]+s|\(cached\))`)

// state matches a row for a job, or for a step of a job, in the accounting table of a batch system.
var state = textmatch.New(`^\s*(\d{2,}(?:[_+]\d+)?(?:\.\w+)?)[\s|]+(?:[^\s|]+[\s|]+){0,6}?(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_ME\w*\+?|PREEMPTED|REQUEUED|BOOT_FAIL|DEADLINE)\b.*?(?:[\s|](\d+:\d+))?[\s|]*$`)

// asks matches a shell command that prints the exit code of the previous command.
var asks = regexp.MustCompile(`\becho "?(?:\w+[ =:]+)?\$\?"?$`)

// declare marks the lines which say that the whole job ended well, where this takes several lines to decide.
func (l *Log) declare() {
	states, last, failed := map[string]string{}, -1, false
	ended := l.allSteps()
	for i, t := range l.Text {
		switch {
		case len(t) > longLine || t == "":
		case t == "0" && i > 0 && asks.MatchString(l.Text[i-1]):
			l.Marks[i] = Done | All | Zero
		case i == ended:
			l.Marks[i] = Done | All
		case failedTests.MatchString(t):
			failed = true
		case !failed && goTests.MatchString(t):
			l.Marks[i] = Done | All
		default:
			if m := state.FindStringSubmatch(t); m != nil {
				states[m[1]], last = m[2], i
				if m[2] == "COMPLETED" && m[3] != "" && m[3] != "0:0" {
					states[m[1]] = "FAILED"
				}
			}
		}
	}
	if last >= 0 && well(states) {
		l.Marks[last] = Done | All | Zero
	}
}

// well reports whether the last states of jobs and their steps say that all have completed. A cancelled step other than
// the batch step does not count, because it only helped the job.
func well(states map[string]string) bool {
	completed := false
	for id, s := range states {
		switch {
		case s == "COMPLETED":
			completed = true
		case s != "CANCELLED" || !strings.Contains(id, ".") || strings.HasSuffix(id, ".batch"):
			return false
		}
	}
	return completed
}

// stepEnds has the forms of two logs that have the output of many steps: the line that begins a step, what says that a
// step has failed, and a line after the last step. A log of GitHub's runner has a line with ##[error] for every step
// that failed. CTest's LastTest.log has the result of a test after its output.
var stepEnds = []struct{ begin, failed, end *textmatch.Pattern }{
	{textmatch.New(`##\[group\]Run `), textmatch.New(`##\[error\]`), textmatch.New(`\bCleaning up orphan processes$`)},
	{textmatch.New(`^\d+/\d+ Test(?:ing)?: `), textmatch.New(`^Test (?:Failed|time out)|\*\*\*`), textmatch.New(`^Test Passed\.$`)},
}

// allSteps returns the index of the last line of a log with the output of many steps, none of which has failed, or -1.
func (l *Log) allSteps() int {
	for _, form := range stepEnds {
		begun, end := false, -1
		for i, t := range l.Text {
			switch {
			case len(t) > longLine:
			case begun && form.failed.MatchString(t):
				return -1
			case begun && form.end.MatchString(t):
				end = i
			default:
				begun = begun || form.begin.MatchString(t)
			}
		}
		if end >= 0 {
			return end
		}
	}
	return -1
}
