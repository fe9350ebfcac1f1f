// Package sshconfig reads OpenSSH's ssh_config. For the name of a host, it finds out everything that a
// connection to that host needs. It starts no programs and makes no connections.
package sshconfig
