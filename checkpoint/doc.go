// Package checkpoint finds the newest checkpoint in a directory from which a job can
// resume. It decides by structure and checksums, not by age, whether a checkpoint is
// complete. docs/checkpoints.md lists what it checks in each format.
package checkpoint
