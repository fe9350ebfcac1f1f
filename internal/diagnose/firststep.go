package diagnose

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/outlook"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// firstStep returns the failure of an earlier step of a script that explains the failure of a later step. The
// later failure is that something is missing: a file, a module, a command. The earlier step should have made it or
// fetched it. firstStep returns later if there is no such failure.
func (m *member) firstStep(st *stream, later *suspect) *suspect {
	if !lacks(later) {
		return later
	}
	for _, g := range st.signs {
		if g.to > later.sign.from {
			break
		}
		if fails(g.rule) && (g.plain && (toolLine.MatchString(g.title) || strings.Contains(g.title, "(total=0,")) || (!g.weak || g.class != "") && !st.survived(g)) && !outlook.Recovers(g.title) && (!warns(g.title) || g.rule.Category == job.CheckpointError) {
			s := m.suspect(st, g)
			if s.rule.Category == job.HostLost { // nothing else of the job was there
				s.rule = rules.Named("ssh-failed")
			}
			return s
		}
	}
	for _, s := range m.messages(st, true) {
		known := s.rule.Signature != rules.ProgramError && s.rule.Signature != later.rule.Signature
		if s.sign.to <= later.sign.from && (known || later.sign.weak && toolLine.MatchString(later.sign.title)) {
			return s
		}
	}
	return later
}

// lacks reports whether a suspect may only show that something is missing.
func lacks(s *suspect) bool {
	switch s.rule.Category {
	case job.IncorrectInputs:
		return s.rule.Signature != "argparse" && s.rule.Signature != "bad-archive"
	case job.ImportError, job.Assertion, job.Traceback:
		return true
	case job.LaunchError:
		return s.rule.Signature == "command-not-found"
	case job.SemanticError:
		return strings.Contains(s.sign.title, "NoneType")
	}
	return false
}

// fails reports whether a rule is about a failure after which the next step of a script lacks something.
func fails(r *rules.Rule) bool {
	switch r.Category {
	case job.HostLost:
		return r.Signature == "host-reported-lost"
	case job.DiskFull, job.NetworkError, job.StorageError, job.PermissionError, job.CPUOOM, job.InvalidMemoryAccess:
		return !r.Is(rules.Cascade) || r.Signature == "connection-refused"
	case job.Killed:
		return !r.Is(rules.Cascade)
	case job.IncorrectInputs:
		return r.Signature == "bad-archive"
	case job.CheckpointError:
		return true
	case job.LaunchError:
		return r.Signature != "command-not-found" && r.Signature != "script-variable"
	}
	return false
}

// warns reports whether a line is a warning.
func warns(t string) bool { return warning.MatchString(t) && !strings.Contains(t, "(total=0,") }

var warning = textmatch.New(`(?i)^\W*(?:\S+ ){0,5}\W{0,2}warn(?:ing)?\b`)

// toolLine is a line of a tool that fetches, unpacks, copies or lists files.
var toolLine = textmatch.New(`^(?:\S+: )?(?:curl|wget|tar|gzip|gunzip|zcat|unzip|zstd|xz|bzip2|cp|mv|ls|cat|head|tail|md5sum|sha\d+sum|stat|zip|scp|rsync|pip3?|conda|mamba|git|aws|gsutil|azcopy|rclone|mkdir|dd|ssh|install|ERROR: Could not install|OSError|error:|fatal:|write remote|\[Errno)\b`)
