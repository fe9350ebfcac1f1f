// Package pmi1 implements the process manager's side of PMI-1 (versions 1.1 and 1.2). With this protocol, ranks of
// MPICH and related MPIs find each other. It consists of a key-value store, barriers, and questions about the gang. A
// Server serves the ranks of one host. A Hub merges the barriers of several hosts.
package pmi1
