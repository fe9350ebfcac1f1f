// Package rules has the rules by which gangrun recognises failures, in one file for each category. docs/add-a-rule.md
// says how to add a rule. The package is larger than others because the rules are data, with a line for each field.
package rules

import (
	"slices"
	"sync"

	"github.com/gangrun/gangrun/internal/diagnose/rule"
)

// written returns every rule in the order of the files. Like patterns, the list and what depends on it are built on
// first use.
var written = sync.OnceValue(func() []*rule.Rule {
	var all []*rule.Rule
	for _, list := range [][]rule.Rule{
		missingLibrary, cudaVersion, cudaInit, gpuHardware, gpuOOM, cpuOOM, cudaFailure, modelDiverged,
		collectiveTimeout, hang, straggler, stoppedEarly, timeLimit, cancelled, mpiRuntime, mpiError, checkpointError, diskFull, storageError, portInUse, outputError,
		permissionError, networkError, launchError, preempted, hostLost, importError, syntaxError, incorrectInputs,
		invalidMemoryAccess, assertion, coreDump, semanticError, killed, traceback, unknown, dialects,
	} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
})

// Standard returns the rules of gangrun itself.
var Standard = sync.OnceValue(func() *rule.Book { return rule.NewBook(written()) })

// rules returns every rule of gangrun's own, the most specific first.
func rules() []*rule.Rule { return Standard().Rules() }

// All lists every rule, the most specific first.
func All() []rule.Rule {
	all := make([]rule.Rule, len(rules()))
	for i, r := range rules() {
		all[i] = *r
	}
	return all
}

// SaysLittle reports whether r fits failures of many causes, as a rule for any panic or for any message about a missing
// file does. If the text of a sign gives a reason, the rule for that reason tells more.
func SaysLittle(r *rule.Rule) bool {
	switch r.Signature {
	case ProgramError, "uncaught-exception", "cpp-exception", "rust-panic", "go-panic", "fortran-runtime", "cuda-error", "library-misuse":
		return true
	case "missing-file", "program-input", "missing-output-directory", "permission-denied":
		return r.Is(rule.Weak) || slices.Contains(r.Classes, rule.Message) || slices.Contains(r.Classes, "go panic")
	}
	return false
}
