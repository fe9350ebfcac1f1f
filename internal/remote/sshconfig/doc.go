// Package sshconfig reads OpenSSH's ssh_config: it finds out, for the name of a host,
// everything that a connection to that host needs. It starts no programs and makes no
// connections.
package sshconfig
