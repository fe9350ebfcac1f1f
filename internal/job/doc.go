// Package job is gangrun's vocabulary: what a job is (Spec), where it runs
// (Host, Placement), what happened to it (Event, Outcome), why (Evidence,
// Cause) and what follows (Verdict). Every other package uses it. It
// imports only the standard library, and only checks and encodes.
package job
