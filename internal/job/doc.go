// Package job is gangrun's vocabulary: what a job is (Spec), where it runs
// (Host, Placement), what happened to it (Event, Outcome), why (Evidence,
// Cause) and what follows (Verdict). Most other packages use it. It
// imports only the standard library. Its functions only check and encode values.
package job
