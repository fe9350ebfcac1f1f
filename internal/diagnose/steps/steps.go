// Package steps says which failed steps of a script are the reason why later steps failed: what one step has not made or
// fetched, the next one lacks.
package steps

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// Lacks reports whether the reason for a failure may be that something is missing which an earlier step should have
// made or fetched. r is the rule of the failure, and title its title.
func Lacks(r *rule.Rule, title string) bool {
	switch r.Category {
	case job.IncorrectInputs:
		return r.Signature != "argparse" && r.Signature != "bad-archive"
	case job.ImportError, job.Assertion, job.Traceback:
		return true
	case job.LaunchError:
		return r.Signature == "command-not-found"
	case job.SemanticError:
		return strings.Contains(title, "NoneType")
	}
	return false
}

// Fails reports whether a rule is about a failure after which the next step of a script lacks something.
func Fails(r *rule.Rule) bool {
	switch r.Category {
	case job.HostLost:
		return r.Signature == "host-reported-lost"
	case job.DiskFull, job.NetworkError, job.StorageError, job.PermissionError, job.CPUOOM, job.InvalidMemoryAccess:
		return !r.Is(rule.Cascade) || r.Signature == "connection-refused"
	case job.Killed:
		return !r.Is(rule.Cascade)
	case job.IncorrectInputs:
		return r.Signature == "bad-archive"
	case job.CheckpointError:
		return true
	case job.LaunchError:
		return r.Signature != "command-not-found" && r.Signature != "script-variable"
	}
	return false
}

// Warns reports whether a line is a warning.
func Warns(t string) bool { return warning.MatchString(t) && !strings.Contains(t, "(total=0,") }

var warning = textmatch.New(`(?i)^\W*(?:\S+ ){0,5}\W{0,2}warn(?:ing)?\b`)

// Tool reports whether a line is one of a tool that fetches, unpacks, copies or lists files.
func Tool(t string) bool { return toolLine.MatchString(t) }

var toolLine = textmatch.New(`^(?:\S+: )?(?:curl|wget|tar|gzip|gunzip|zcat|unzip|zstd|xz|bzip2|cp|mv|ls|cat|head|tail|md5sum|sha\d+sum|stat|zip|scp|rsync|pip3?|conda|mamba|git|aws|gsutil|azcopy|rclone|mkdir|dd|ssh|install|ERROR: Could not install|OSError|error:|fatal:|write remote|\[Errno)\b`)
