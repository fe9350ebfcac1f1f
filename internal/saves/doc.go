// Package saves judges the checkpoints that a gang writes, and how often it writes them. A Follower gets
// listings of a checkpoint directory, one after the other. It finds out which checkpoints are being written,
// complete, broken, overdue or much smaller than before, and whether the disk has room for the next
// checkpoints. Stall computes how long a training stood still for a checkpoint, and Best computes how often it
// should save. The package has no clock and reads no files: the caller passes times and listings.
package saves
