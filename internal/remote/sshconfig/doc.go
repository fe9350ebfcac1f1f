// Package sshconfig reads OpenSSH's ssh_config: it resolves the name of a host to everything
// that a connection to it needs. It runs nothing and connects to nothing.
package sshconfig
