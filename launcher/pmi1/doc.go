// Package pmi1 is the process manager's side of PMI-1 (versions 1.1 and 1.2), the protocol by
// which ranks of the MPICH family find each other: a key-value store, barriers, and questions
// about the gang. One Server serves the ranks of one host. A Hub merges the barriers of
// several hosts.
package pmi1
