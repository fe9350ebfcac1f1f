// Package saves judges the checkpoints that a gang writes, and how often it writes them. A Follower follows
// a checkpoint directory by looks at it: which checkpoints are being written, are complete or broken, are
// overdue or much smaller than before, and whether the next ones have room. Stall finds how long a training
// stood still for a checkpoint, and Best how often it should save. The package has no clock and touches no
// file: times and looks come in as arguments.
package saves
