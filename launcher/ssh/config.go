package ssh

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"
)

const (
	// DefaultPort is that of a host for which ssh_config names none.
	DefaultPort = 22
	// defaultConnectTimeout bounds a set-up, from the first packet to the
	// login, where ssh_config has no ConnectTimeout.
	defaultConnectTimeout = 10 * time.Second
)

// Config says where the user's settings for SSH are. Fields left empty are
// absent; DefaultConfig fills them.
type Config struct {
	UserFile         string              // ssh_config of the user
	SystemFile       string              // ssh_config of the system, read after the user's
	KnownHosts       []string            // where UserKnownHostsFile is not set
	GlobalKnownHosts []string            // where GlobalKnownHostsFile is not set
	AgentSocket      string              // where IdentityAgent is not set; "" for no agent
	User             string              // who runs this, and logs in where no User is set
	UID              int                 // of that user: whose files are believed
	Home             string              // what ~ and %d stand for
	Hostname         string              // of this machine: %l and %L
	Getenv           func(string) string // for ${NAME} and IdentityAgent $NAME; nil: an empty environment
}

// DefaultConfig is where OpenSSH looks, for this process's user and environment.
func DefaultConfig() (Config, error) {
	u, err := user.Current()
	if err != nil {
		return Config{}, fmt.Errorf("who runs this cannot be told: %w", err)
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
		return Config{}, fmt.Errorf("this machine's name cannot be told: %w", err)
	}
	return c, nil
}

// Endpoint is one host as ssh_config has it: everything that a connection
// needs, with ~ and tokens expanded.
type Endpoint struct {
	Name              string // as it was asked for, without user and port
	Host              string // what is dialled
	Port              int
	User              string
	Identities        []string      // private key files, the first one first
	IdentitiesNamed   bool          // they are ssh_config's, not the defaults
	IdentitiesOnly    bool          // no other key of the agent
	Certificates      []string      // CertificateFile
	Agent             string        // socket of the agent, "" for none
	Jumps             []string      // hosts to go through, the first one first
	KnownHosts        []string      // the user's files first, then the system's
	HostKeyAlias      string        // looked up in them in place of Host
	RevokedHostKeys   string        // a file of public keys, "" for none
	HostKeyAlgorithms []string      // nil: all that there are
	KeyExchanges      []string      // nil: all
	Ciphers           []string      // nil: all
	MACs              []string      // nil: all
	Network           string        // tcp, tcp4 or tcp6
	BindAddress       string        // "" for any
	ConnectTimeout    time.Duration // for the whole set-up of a connection
	NoKeys            bool          // PubkeyAuthentication no
	Unable            []string      // ways to log in that are asked for and that gangrun cannot do
}

func (e Endpoint) peer() Peer {
	return Peer{Name: e.Name, Host: e.Host, Port: e.Port, User: e.User}
}

// Resolve says how host is reached by ssh_config, and in notes what ssh_config
// asks for that gangrun does not do. host is [USER@]HOST[:PORT]; a user and a
// port given so win. What would make another way of it than the user meant
// (ProxyCommand) is an error, a *ConfigError.
func (c Config) Resolve(host string) (Endpoint, []string, error) {
	t, err := parseTarget(host)
	if err != nil {
		return Endpoint{}, nil, err
	}
	o, err := readOptions(c, t)
	if err != nil {
		return Endpoint{}, nil, err
	}
	e := Endpoint{Name: t.host, Host: o.host(), User: o.user(), Port: t.port}
	if err := plainHost(e.Host); err != nil {
		return Endpoint{}, nil, o.first("hostname").fail("give a name or an address", "HostName %q: %v", e.Host, err)
	}
	if err := plainUser(e.User); err != nil {
		return Endpoint{}, nil, o.first("user").fail("give the user's name there", "User %q: %v", e.User, err)
	}
	for _, read := range []func(*Endpoint, *options) error{c.readAddress, c.readJumps, c.readKnown, c.readKeys, c.readAlgorithms} {
		if err := read(&e, o); err != nil {
			return Endpoint{}, nil, err
		}
	}
	o.remark(&e)
	return e, o.notes, nil
}
