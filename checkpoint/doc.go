// Package checkpoint finds the newest checkpoint in a directory that a job can
// resume from. Whether one is complete follows from its structure and its
// checksums, never by its age: see docs/checkpoints.md for what is checked of
// which format.
package checkpoint
