package diagnose

import (
	"time"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// A host's record counts for a rank's end from windowBefore before it to
// windowAfter after it.
const (
	windowBefore = 10 * time.Minute
	windowAfter  = 5 * time.Minute
)

// record is a sign that a host's kernel, or gangrun's agent there, has recorded.
type record struct {
	rule  *rule.Rule
	sign  *sign.Sign
	line  job.Line
	pid   int
	names map[string]string
	text  []string // of the records beside it
}

func newRecord(st *stream, g *sign.Sign) record {
	r := record{rule: g.Rule, sign: g, line: st.lines[g.At], text: st.text, names: g.Rule.Groups(g.Text)}
	r.pid = logtext.Number(r.names["pid"])
	return r
}

// explain gives suspects the cause that a host's record proves. For a process that was killed, that
// is an out-of-memory kill; for a process that crashed, the place of the crash; for a rank whose
// own signs do not name a fault of the program, the fault of a GPU.
func explain(all []*suspect, records []record, members []*member) {
	for _, s := range all {
		for _, r := range records {
			confidence := r.proves(s, members)
			if confidence == 0 || s.record != nil && confidence <= s.confidence {
				continue
			}
			s.rule, s.record, s.confidence = r.rule, &r.line, confidence
			s.names = map[string]string{"artefact": r.names["artefact"]}
		}
	}
}

// proves returns the confidence with which a record explains a suspect. It is 0 if the record does
// not.
func (r record) proves(s *suspect, members []*member) float64 {
	if r.line.Host != "" && s.host != "" && r.line.Host != s.host || !r.near(s.time) {
		return 0
	}
	switch r.rule.Category {
	case job.CPUOOM:
		if s.signal != 9 && s.rule.Signature != "worker-killed" && !(s.record != nil && s.rule.Category == job.CPUOOM) {
			return 0
		}
	case job.InvalidMemoryAccess:
		if s.rule.Signature != "sigsegv" {
			return 0
		}
	case job.StorageError:
		file := s.rule.Signature == "read-only" || s.rule.Category == job.DiskFull || s.rule.Category == job.CheckpointError || s.sign != nil && (s.sign.Class == "forrtl severe" || s.sign.Class == "fortran runtime error" || rules.SaysLittle(s.rule) && ofFile.MatchString(s.title()))
		if s.rule.Category.Fault() == job.FaultUser && !s.rule.Is(rule.Generic) && !file {
			return 0
		}
	case job.CUDAFailure:
		if s.rule.Category != job.CUDAFailure && !s.rule.Is(rule.Generic|rule.Cascade) {
			return 0
		}
	default:
		if s.rule.Category.Fault() == job.FaultUser && !s.rule.Is(rule.Generic) {
			return 0
		}
	}
	if r.pid == 0 {
		return r.rule.Confidence
	}
	if r.pid == s.pid || s.exit != nil && r.pid == s.exit.PID {
		return r.rule.Confidence
	}
	for _, m := range members {
		if m.exit != nil && m.exit.PID == r.pid && (r.line.Host == "" || m.host == r.line.Host) {
			return 0 // the record is about that rank
		}
	}
	return r.rule.Confidence - 0.2 // a child of the rank, or seen from inside a container
}

// ofFile matches messages of a program that could not read or write a file.
var ofFile = textmatch.New(`(?i)\b(?:read|writ|flush|clos|sync|sav|stor|open)(?:e|ing|ten)?\b.{0,40}\b(?:files?|block|record|chunk|page|buffer|data|unit|to|from)\b|\bI/?O\b`)

func (r record) near(end time.Time) bool {
	if r.line.Time.IsZero() || end.IsZero() {
		return true
	}
	d := end.Sub(r.line.Time)
	return d <= windowBefore && d >= -windowAfter
}

// recorded returns a suspect of what a host's kernel has recorded: memory that was used up, a GPU, a disk or
// a host that failed. It is nil if nothing was.
func recorded(records []record, members []*member) *suspect {
	for _, s := range unexplained(records) {
		switch s.rule.Category {
		case job.CPUOOM, job.GPUHardware, job.StorageError, job.HostLost, job.NetworkError:
			s.pid = logtext.Number(s.names["pid"])
			s.rank = roster.Count(logsOf(members)).OfPID(s.pid)
			return s
		}
	}
	return nil
}

// unexplained makes suspects of records alone.
func unexplained(records []record) []*suspect {
	var all []*suspect
	for _, r := range records {
		if r.rule.Confidence < 0.9 {
			continue
		}
		line := r.line
		all = append(all, &suspect{rule: r.rule, rank: -1, host: line.Host, time: line.Time, names: r.names, confidence: r.rule.Confidence - 0.2, record: &line})
	}
	return all
}
