// Package steps says which failures of the steps of a script explain one another: what one step has not made or
// fetched, the next one lacks.
package steps

import (
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/sign"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

// NoGPU returns the sign that a GPU could not be used, if a later sign may only show that: it counts GPUs, chooses one, or
// requires one. It returns nil if there is none.
func NoGPU(signs []*sign.Sign, later *sign.Sign) *sign.Sign {
	switch later.Rule.Category {
	case job.SemanticError, job.Assertion, job.Traceback, job.IncorrectInputs:
		if !gpus.MatchString(later.Title) && !gpus.MatchString(lastFrames(later.Context)) {
			return nil
		}
		for _, g := range signs {
			if g.Rule.Category == job.CUDAInit && g.To <= later.From {
				return g
			}
		}
	}
	return nil
}

// lastFrames returns the last two frames of a traceback.
func lastFrames(frames string) string {
	i := strings.LastIndexByte(strings.TrimRight(frames, "\n"), '\n')
	return frames[strings.LastIndexByte(frames[:max(i, 0)], '\n')+1:]
}

var gpus = textmatch.New(`(?i)\b(?:num_?|n_?|local_?|physical_?|logical_?|visible_?|all_?)?(?:gpus?|cuda|devices?)(?:_?list|_?ids?|_?count|_?names?)?\b|/gpu:\d|\bdevice_count\b|\bis_available\b`)

// Lacks reports whether a sign with a rule and a title may only show that something is missing.
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
