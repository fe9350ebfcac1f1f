package preflight

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
)

// judgement is what one round of the trial shows.
type judgement string

// The judgements. All except good are also the ends of the Problems' signatures.
const (
	good         judgement = "good"
	bad          judgement = "failed"       // the gang would fail, too
	few          judgement = "few-ranks"    // the attempt failed, perhaps only because it had fewer ranks than the gang
	worldSize    judgement = "world-size"   // the program itself says that it needs more ranks
	outOfMemory  judgement = "memory"       // there were too few ranks for the memory that the job needs
	full         judgement = "full"         // the attempt wrote more than a contained attempt may write
	containing   judgement = "contained"    // the attempt failed, perhaps only because it was contained
	inconclusive judgement = "inconclusive" // the attempt ended for a reason that may be temporary
	waiting      judgement = "stdin"        // a rank waits for standard input, which a trial does not have
	late         judgement = "late"         // the ranks did not start in time
)

// step is a judgement with the facts on which it rests.
type step struct {
	judgement
	result
	ranks int
	cause job.Cause // unless good, waiting or late
	line  job.Line  // of a worldSize
}

// judge decides what an attempt shows.
func (t *trial) judge(a job.Attempt, res result) step {
	s := step{judgement: good, result: res, ranks: len(a.Placement.Ranks)}
	if res.passed != "" {
		return s
	}
	if res.late || res.waits {
		s.judgement = late
		if res.waits {
			s.judgement = waiting
		}
		return s
	}
	evidence := job.Evidence{Ranks: s.ranks, Trial: true, Outcome: res.outcome, Lines: res.outcome.Lines, Command: a.Command}
	s.cause = t.p.Diagnose(evidence)
	if s.cause.Text == "" {
		s.cause.Text = endedHow(res.outcome)
	}
	fewer := s.ranks < max(t.spec.Ranks, t.p.Gang.Ranks)
	if line, ok := t.p.WorldSize(evidence); ok && fewer {
		s.judgement, s.line = worldSize, line
		return s
	}
	s.judgement = weigh(s.cause, res.outcome, a, fewer)
	return s
}

// weigh judges an attempt by the cause of its failure. fewer is true if the gang has more ranks than the
// attempt.
func weigh(cause job.Cause, o job.Outcome, a job.Attempt, fewer bool) judgement {
	switch {
	case fixed(cause), ofStorage(cause.Category) && ofAgent(cause):
		return bad
	case a.Contain != nil && cause.Category == job.DiskFull:
		return full
	case a.Contain != nil && mayBeContainment(cause, o, a):
		return containing
	case cause.Category == job.PermissionError:
		return bad
	case missingInput(cause) && !(fewer && numbered(cause, len(a.Placement.Ranks))):
		return bad
	case fewer && (cause.Category == job.CPUOOM || cause.Category == job.GPUOOM):
		return outOfMemory
	case passing(cause.Category):
		return inconclusive
	case fewer:
		return few
	case a.Contain != nil && blurred(o, a):
		return containing
	}
	return bad
}

// fixed reports whether a cause would end a gang of any size, whether contained or not. If something cannot be
// imported, parsed, linked or executed, another number of ranks does not change that.
func fixed(c job.Cause) bool {
	switch c.Category {
	case job.ImportError, job.SyntaxError, job.MissingLibrary, job.LaunchError, job.CUDAVersion:
		return true
	}
	return false
}

// ofAgent reports whether gangrun itself failed, outside of the contained part, because it could not store what
// the ranks printed.
func ofAgent(c job.Cause) bool {
	n := len(c.Evidence)
	return n > 0 && c.Evidence[n-1].Source == job.SourceAgent
}

// missingInput reports whether a file that the job reads was not there.
func missingInput(c job.Cause) bool {
	return c.Category == job.IncorrectInputs && c.Signature == "missing-file"
}

// numbered reports whether the text of a cause contains the number of ranks, for instance in the
// name of a file. Another number of ranks may then look for another file.
func numbered(c job.Cause, ranks int) bool {
	numbers := strings.FieldsFunc(c.Text, func(r rune) bool { return r < '0' || r > '9' })
	return slices.Contains(numbers, strconv.Itoa(ranks))
}

// passing reports whether a cause may be gone at the next start. Such a cause says nothing about the program,
// so gangrun never refuses a gang because of it.
func passing(c job.Category) bool {
	if c.Fault() == job.FaultRun {
		return c != job.Unknown && c != ""
	}
	return c == job.Killed || c.Action() == job.RetryAgain || c.Action() == job.RetryElsewhere
}

// endedHow says how an attempt ended if no cause was found.
func endedHow(o job.Outcome) string {
	if e, ok := o.First(); ok {
		return e.String()
	}
	return "it ended before it could pass"
}

// finding makes a finding from a step that is not good.
func (s step) finding(spec job.Spec) job.Finding {
	code := s.code()
	var hosts []string
	if s.cause.Host != "" {
		hosts = []string{s.cause.Host}
	}
	hint := s.cause.Hint
	if hint != "" {
		hint += "; "
	}
	f := lookup(code).finding(Hit{
		Signature: code + "-" + string(s.judgement), Hosts: hosts,
		Values: map[string]string{
			"ranks": text.Count(s.ranks, "rank"), "gang": text.Count(spec.Ranks, "rank"), "elapsed": text.Span(s.elapsed), "cause": s.cause.Text,
			"hint": hint, "line": quote(s.line.Text), "limit": text.Span(StartLimit),
		},
	}, 0)
	if s.judgement != late && s.judgement != waiting {
		f.Cause = &s.cause
	}
	return f
}

// unreaped returns findings about the ranks of the step that may still be running.
func (s step) unreaped() []job.Finding {
	var findings []job.Finding
	for _, u := range s.outcome.Unreaped {
		findings = append(findings, lookup(s.code()).finding(Hit{
			Signature: s.code() + "-unreaped", Hosts: []string{u.Host},
			Values: map[string]string{"ranks": "rank " + strconv.Itoa(u.Rank)},
		}, 0))
	}
	return findings
}

func (s step) code() string {
	if s.ranks > 1 {
		return CodeTrialRanks
	}
	return CodeTrial
}
