// Package preflight looks for problems of a job before its gang is started. First it makes static checks, which
// compare the facts of every host with the needs of the job (see Checks and Static). Then it makes a trial: it
// runs the job's own command on one rank or a few ranks, until the command has shown that it works (see
// Preflight). gangrun remembers for a while that a trial has passed (see package memory).
//
// The static checks have no side effects. docs/preflight.md is generated from their
// declarations (see Document).
package preflight
