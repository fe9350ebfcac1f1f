// Package sshclient is an SSH client that behaves as the user's ssh does. It follows ssh_config
// (package sshconfig), and logs in with ssh-agent, keys and certificates. It accepts a host
// only if known_hosts has the host's key. It can connect through jump hosts. It ends a
// connection if the host is silent for too long. Each error names the host and the way to it,
// and has a hint.
package sshclient
