package sshconfig

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"
)

const (
	// DefaultPort is the port of a host if ssh_config names no port for it.
	DefaultPort = 22
	// defaultConnectTimeout limits the time from the first packet to the end of the
	// login if ssh_config has no ConnectTimeout.
	defaultConnectTimeout = 10 * time.Second
)

// Config has the files from which Resolve reads the settings of a host, and facts about the user and this
// machine that it needs. An empty field means that there is no such file, agent or name. Default fills all
// fields.
type Config struct {
	UserFile         string              // ssh_config of the user
	SystemFile       string              // ssh_config of the system, read after the user's
	KnownHosts       []string            // files to use if UserKnownHostsFile is not set
	GlobalKnownHosts []string            // files to use if GlobalKnownHostsFile is not set
	AgentSocket      string              // the socket of ssh-agent, to use if IdentityAgent is not set
	User             string              // the user of this process, who logs in if User is not set
	UID              int                 // the ID of that user; files that other users can write are refused
	Home             string              // the value of ~ and %d
	Hostname         string              // the name of this machine, the value of %l and %L
	Getenv           func(string) string // for ${NAME} and IdentityAgent $NAME; nil means an empty environment
}

// Default returns the Config for the user and the environment of this process, with the files that OpenSSH
// reads.
func Default() (Config, error) {
	u, err := user.Current()
	if err != nil {
		return Config{}, fmt.Errorf("the user of this process has no name: %w", err)
	}
	c := Config{
		SystemFile:       "/etc/ssh/ssh_config",
		GlobalKnownHosts: []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
		AgentSocket:      os.Getenv("SSH_AUTH_SOCK"),
		User:             u.Username,
		UID:              os.Getuid(),
		Home:             u.HomeDir,
		Getenv:           os.Getenv,
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		c.Home = home
	}
	c.UserFile = filepath.Join(c.Home, ".ssh", "config")
	c.KnownHosts = []string{filepath.Join(c.Home, ".ssh", "known_hosts"), filepath.Join(c.Home, ".ssh", "known_hosts2")}
	c.Hostname, err = os.Hostname()
	if err != nil {
		return Config{}, fmt.Errorf("the name of this machine cannot be read: %w", err)
	}
	return c, nil
}

// Endpoint is everything that a connection to one host needs. In the names of files, ~ and
// tokens such as %h are expanded.
type Endpoint struct {
	Name           string // the host as it was asked for, without user and port
	Host           string // the name or address to connect to
	Port           int
	User           string
	Jumps          []string      // the jump hosts on the way, the first one first
	Network        string        // tcp, tcp4 or tcp6
	BindAddress    string        // the local address; empty for any
	ConnectTimeout time.Duration // for the whole set-up of a connection
	Login          Login
	HostKeys       HostKeys
	Algorithms     Algorithms
}

// Login says how a user logs in to a host.
type Login struct {
	Identities      []string // private key files, in the order to try them
	IdentitiesNamed bool     // ssh_config names the Identities; otherwise they are the default ones
	IdentitiesOnly  bool     // use no other key of ssh-agent
	Certificates    []string // the files of CertificateFile
	Agent           string   // the socket of ssh-agent; empty for none
	NoKeys          bool     // PubkeyAuthentication is no
	Unsupported     []string // ways to log in that ssh_config names, but this package does not support
}

// HostKeys says how the key of a host is checked.
type HostKeys struct {
	Files   []string // known_hosts files, the user's before the system's
	Alias   string   // HostKeyAlias, the name to look up in place of Endpoint.Host
	Revoked string   // a file of revoked public keys; empty for none
}

// Algorithms lists the algorithms that may be used. A nil list allows all algorithms that this program
// supports.
type Algorithms struct {
	HostKeys, KeyExchanges, Ciphers, MACs []string
}

// Resolve resolves host, which is [USER@]HOST[:PORT]. A user and a port in host take precedence over
// ssh_config. The notes name the settings in ssh_config that Resolve ignores, because this package does not
// support them. If it would be wrong to ignore a setting, such as ProxyCommand, because the connection could
// then lead to another host than the user meant, Resolve returns an *Error.
func (c Config) Resolve(host string) (Endpoint, []string, error) {
	h, err := ParseHost(host)
	if err != nil {
		return Endpoint{}, nil, err
	}
	o, err := readOptions(c, h)
	if err != nil {
		return Endpoint{}, nil, err
	}
	e := Endpoint{Name: h.Name, Host: o.host(), User: o.user(), Port: h.Port}
	if err := checkName(e.Host); err != nil {
		return Endpoint{}, nil, o.first("hostname").fail("give a name or an address", "HostName %q: %v", e.Host, err)
	}
	if err := checkUser(e.User); err != nil {
		return Endpoint{}, nil, o.first("user").fail("give the user's name there", "User %q: %v", e.User, err)
	}
	for _, read := range []func(*Endpoint, *options) error{c.readAddress, c.readJumps, c.readKnown, c.readKeys, c.readAlgorithms} {
		if err := read(&e, o); err != nil {
			return Endpoint{}, nil, err
		}
	}
	o.noteUnsupported(&e)
	return e, o.notes, nil
}
