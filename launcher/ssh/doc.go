// Package ssh starts the agents of other hosts and keeps a connection to each of them. It
// installs gangrun on a host that lacks it, starts an agent or adopts one that an earlier
// controller has started, connects again when a connection breaks or falls silent, and reads
// what an agent has left behind.
//
// It needs only a way to run a command on a host (Dialer). Client is that way over SSH.
package ssh
