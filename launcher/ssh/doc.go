// Package ssh reaches hosts over SSH as the user's own ssh would: it reads
// their ssh_config, proves who they are with ssh-agent, keys and certificates,
// believes a host only by its known_hosts, jumps through other hosts, runs
// commands, notices when a line goes silent, and brings gangrun's own program
// to a host that lacks it.
package ssh
