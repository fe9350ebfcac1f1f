package sign

import (
	"slices"

	"github.com/gangrun/gangrun/internal/diagnose/message"
	"github.com/gangrun/gangrun/internal/diagnose/reason"
	"github.com/gangrun/gangrun/internal/diagnose/rule"
	"github.com/gangrun/gangrun/internal/diagnose/rules"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
	"github.com/gangrun/gangrun/internal/job"
)

var (
	// wantsDevice matches messages of programs that find no GPU.
	wantsDevice = textmatch.New(`(?i)\b(?:no|zero|0|without an?|at least (?:one|1)|requires? an?|needs? an?) (?:\w+ ){0,2}(?:gpus?|cuda|accelerators?|devices?)\b|\b(?:gpus?|cuda|accelerators?)\b.{0,30}\b(?:not|un)[ -]?(?:be )?(?:available|found|usable|detected|functional|initiali[sz]ed|visible)\b`)
	// aboutDevice matches warnings and errors about the start of CUDA. They may explain why a program finds no GPU.
	aboutDevice = textmatch.New(`(?i)\b(?:cuda|nvml|nvidia|hip|rocm)\b.{0,200}\b(?:driver|error|failed|mismatch|initiali[sz]\w+)\b`)
)

// deviceBefore is how many lines before such a message a library may have said why there is no GPU.
const deviceBefore = 12

// blameDevice changes the rule of signs which say that there is no GPU to the rule of an earlier line which says why.
func (f *finder) blameDevice() {
	for _, g := range f.withMessage() {
		if g.Plain || g.Report != nil || !wantsDevice.MatchString(g.Text) {
			continue
		}
		for i := g.From - 1; i >= max(0, g.From-deviceBefore); i-- {
			t := f.Lines[i]
			if !aboutDevice.MatchString(t) {
				continue
			}
			r := (&Sign{Class: rule.Message, Text: t}).Match(f.book)
			if r != nil && (r.Category == job.CUDAVersion || r.Category == job.CUDAInit) {
				g.Rule = r
				break
			}
			// CUDA can give no better reason before it has started.
			if r != nil && r.Category == job.CUDAFailure && rules.SaysLittle(g.Rule) {
				g.Rule = rules.Named("cuda-init")
				break
			}
		}
	}
}

// withMessage returns the signs and the program's own message.
func (f *finder) withMessage() []*Sign {
	if f.Message == nil {
		return f.Signs
	}
	return append(f.Signs[:len(f.Signs):len(f.Signs)], f.Message)
}

// undelivered matches what the transports of MPI print if the network does not deliver a message.
var undelivered = textmatch.New(`(?i)\bUNDELIVERABLE\b|\bLE_TIMEOUT\b|\bno route to host\b|\b(?:network|host|destination) is unreachable\b|\bretry count(?:er)? exceeded\b|\bRETRY_EXC_ERR\b|\blink (?:is |went )?down\b|\bconnection timed out\b|\bendpoint timeout\b|\bport (?:is )?(?:not active|down)\b|\bOFI \w+(?: \w+)? failed\b.*(?:Input/output error|PTLTE)`)

// How many lines before and after the error of an MPI call the transport may give the reason.
const (
	transportBefore = 3
	transportAfter  = 7
)

// blameTransport changes the rule of errors of MPI calls if the lines around them say that the network failed.
func (f *finder) blameTransport() {
	for _, g := range f.Signs {
		if s := g.Rule.Signature; s != "mpi-call" && s != "mpi-errors-are-fatal" {
			continue
		}
		if slices.ContainsFunc(f.Lines[max(0, g.From-transportBefore):min(len(f.Lines), g.To+transportAfter)], undelivered.MatchString) {
			g.Rule = rules.Named("unreachable")
		}
	}
}

// helpLines is how many lines a help text of Open MPI may have.
const helpLines = 20

// blameHelp changes the rule of Open MPI's help texts about its start if a line of the text gives the reason of the
// operating system.
func (f *finder) blameHelp() {
	for _, g := range f.Signs {
		if g.Rule.Signature != "mpi-init" || !g.Plain {
			continue
		}
		for _, t := range f.Lines[g.To:min(len(f.Lines), g.To+helpLines)] {
			if message.Separator(t) {
				break
			}
			if !toldReason.MatchString(t) {
				continue
			}
			if s := reason.Of(t); s != "" && s != "missing-file" {
				g.Rule = rules.Named(s)
			}
		}
	}
}

// toldReason matches the line of a help text that gives the reason.
var toldReason = textmatch.New(`(?i)^\s*(?:error|reason|errno|cause|message)\w*: +\S`)

// noteBefore is how many lines before an exception that says little may tell its reason.
const noteBefore = 9

// blameNote changes the rule of exceptions that say little to the rule of the error that the program printed just
// before.
func (f *finder) blameNote() {
	for _, g := range f.Signs {
		if !g.Native || !rules.SaysLittle(g.Rule) || !g.Rule.Is(rule.Generic) {
			continue
		}
		head := slices.IndexFunc(f.Lines[max(0, g.From-noteBefore):g.From], message.Announces)
		if head < 0 {
			continue
		}
		for i := max(0, g.From-noteBefore) + head; i < g.From; i++ {
			if h := f.means(i); h != nil {
				g.Rule = h.Rule
				break
			}
			if s := reason.OfGPU(f.Lines[i]); s != "" {
				g.Rule = rules.Named(s)
				break
			}
		}
	}
}
