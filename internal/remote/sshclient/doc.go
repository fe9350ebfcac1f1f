// Package sshclient is an SSH client that behaves as the user's ssh would: it follows
// ssh_config (package sshconfig), logs in with ssh-agent, keys and certificates, accepts a host
// only by its key in known_hosts, and goes through jump hosts. It ends a connection if the host
// is silent for too long. Each error names the host and the way to it, and has a hint.
package sshclient
