// Package preflight looks for what would break a gang before the gang is spent
// on it: first by static checks, which judge what every host says of itself
// and of the job's needs (see Checks and Static), then by a trial, which runs
// the job's own command on one rank until it has shown that it works (see
// Preflight). A good trial is remembered for a while (see Memory).
//
// The checks are pure and declared as data; docs/preflight.md is written from
// the same data (see Document).
package preflight
