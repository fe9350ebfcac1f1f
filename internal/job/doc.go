// Package job is gangrun's vocabulary: what a job is (Spec), where it runs
// (Host, Placement), what happened to it (Event, Outcome), why (Evidence,
// Cause) and what follows (Verdict). Most other packages use it. It
// imports only the standard library. Its functions only check and encode values.
//
// The package is larger than others, because it has the types of everything that a journal or a report contains. Most
// of its lines are fields with their comments.
package job
