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

// A host's record can explain a rank's end if it was made at most windowBefore before the end or windowAfter after it.
const (
	windowBefore = 10 * time.Minute
	windowAfter  = 5 * time.Minute
)

// record is a sign in the records of a host's kernel or of gangrun's agent there.
type record struct {
	rule  *rule.Rule
	sign  *sign.Sign
	line  job.Line
	pid   int
	names map[string]string
	text  []string // the lines of the record's stream
}

func newRecord(st *stream, g *sign.Sign) record {
	r := record{rule: g.Rule, sign: g, line: st.lines[g.At], text: st.text, names: g.Rule.Groups(g.Text)}
	r.pid = logtext.Number(r.names["pid"])
	return r
}

// explain gives suspects the causes that records of hosts prove: to a process that was killed, an out-of-memory kill;
// to a process that crashed, the place of the crash; to a rank whose own signs do not show a fault of the program, the
// fault of a GPU, a disk or the like.
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

// proves returns the confidence with which a record explains a suspect, or 0 if it does not.
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
	return r.rule.Confidence - 0.2 // a child of the rank, or the rank's PID inside a container
}

// ofFile matches messages of programs that could not read or write a file.
var ofFile = textmatch.New(`(?i)\b(?:read|writ|flush|clos|sync|sav|stor|open)(?:e|ing|ten)?\b.{0,40}\b(?:files?|block|record|chunk|page|buffer|data|unit|to|from)\b|\bI/?O\b`)

func (r record) near(end time.Time) bool {
	if r.line.Time.IsZero() || end.IsZero() {
		return true
	}
	d := end.Sub(r.line.Time)
	return d <= windowBefore && d >= -windowAfter
}

// recorded returns a suspect for what a host's kernel has recorded: memory that was used up, or a GPU, a disk or a host
// that failed. It returns nil if there is no such record.
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

// unexplained returns suspects made from records alone.
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
