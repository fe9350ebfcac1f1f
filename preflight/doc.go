// Package preflight looks for problems before a gang is started. First come static checks,
// which judge the facts of every host and the needs of the job (see Checks and Static).
// Then comes a trial, which runs the job's own command on one rank until it has shown that
// it works (see Preflight). A trial that passed is remembered for a while (see package
// memory).
//
// The checks are pure and declared as data. docs/preflight.md is generated from the same
// data (see Document).
package preflight
