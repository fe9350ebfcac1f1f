// Package pmi1 is the process manager's side of PMI-1, the protocol by which
// ranks of the MPICH family find each other: a key-value store, barriers, and
// what a rank wants to know of its gang. One Server serves the ranks of one
// host; a Hub merges the barriers of several hosts. PMI-1.1 and PMI-1.2 (barriers
// of groups) are spoken.
package pmi1
