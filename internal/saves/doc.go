// Package saves judges the checkpoints that a gang writes, and how often it writes them. A Follower follows
// a checkpoint directory by listings of it: it finds which checkpoints are being written, are complete, are
// broken, are overdue or are much smaller than before, and whether the disk has room for the next ones. Stall
// finds how long a training stood still for a checkpoint, and Best how often it should save. The package has no
// clock and reads no file: the caller passes times and listings.
package saves
