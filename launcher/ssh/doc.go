// Package ssh starts the agents of other hosts and keeps a connection to each of them. It
// installs gangrun on a host that lacks it. It starts an agent, or adopts an agent that an
// earlier controller has started. It connects again when a connection breaks or falls silent.
// If an agent has died, it reads the files that the agent has left.
//
// It needs only a way to run commands on a host, a Dialer. Client is the Dialer that uses SSH.
package ssh
