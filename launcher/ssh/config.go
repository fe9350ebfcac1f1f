package ssh

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	xssh "golang.org/x/crypto/ssh"
)

const (
	defaultPort = 22
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
	Name              string        // as it was asked for, without user and port
	Host              string        // what is dialled
	Port              int           //
	User              string        //
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

// target is a host as a person writes it.
type target struct {
	host, user string
	port       int // 0 where none was given
}

// parseTarget reads [ssh://][USER@]HOST[:PORT]; an IPv6 address stands in
// brackets where a port follows it.
func parseTarget(s string) (target, error) {
	bad := func(format string, args ...any) (target, error) {
		return target{}, &ConfigError{Text: fmt.Sprintf("host %q: ", s) + fmt.Sprintf(format, args...), Fix: "write HOST, USER@HOST or USER@HOST:PORT"}
	}
	var t target
	rest := strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		t.user, rest = rest[:i], rest[i+1:]
		if err := plainUser(t.user); err != nil {
			return bad("%v", err)
		}
	}
	t.host = rest
	if strings.HasPrefix(rest, "[") || strings.Count(rest, ":") == 1 {
		host, port, err := net.SplitHostPort(rest)
		if inner, ok := strings.CutSuffix(rest, "]"); ok && strings.HasPrefix(rest, "[") {
			host, port, err = inner[1:], "", nil
		}
		if err != nil {
			return bad("%v", err)
		}
		t.host = host
		if port != "" {
			if t.port, err = parsePort(port); err != nil {
				return bad("%v", err)
			}
		} else if !strings.HasSuffix(rest, "]") {
			return bad("no port follows the colon")
		}
	}
	if err := plainHost(t.host); err != nil {
		return bad("%v", err)
	}
	return t, nil
}

func parsePort(s string) (int, error) {
	port, err := strconv.Atoi(s)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%q is no port (1 to 65535)", s)
	}
	return port, nil
}

// plainHost refuses names that no host has and that a command line could
// misread: they end up in hints that people copy.
func plainHost(s string) error {
	if s == "" {
		return fmt.Errorf("there is no name")
	}
	if s[0] == '-' {
		return fmt.Errorf("a name does not begin with a dash")
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r < 0x80 && strings.ContainsRune("'`\"$\\;&<>|(){}[]*?!#/,~@=^", r) || r == 0xfffd {
			return fmt.Errorf("a name has no %q in it", r)
		}
	}
	return nil
}

func plainUser(s string) error {
	if s == "" {
		return fmt.Errorf("there is no user before the @")
	}
	if s[0] == '-' {
		return fmt.Errorf("a user's name does not begin with a dash")
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || strings.ContainsRune("'`\";&<>|(){}", r) || r == 0xfffd {
			return fmt.Errorf("a user's name has no %q in it", r)
		}
	}
	return nil
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

func (c Config) readAddress(e *Endpoint, o *options) (err error) {
	if at := o.first("port"); e.Port == 0 && at.value() != "" {
		if e.Port, err = parsePort(at.value()); err != nil {
			return at.fail("give a port", "Port %v", err)
		}
	}
	if e.Port == 0 {
		e.Port = defaultPort
	}
	e.Network = "tcp"
	switch at := o.first("addressfamily"); strings.ToLower(at.value()) {
	case "", "any":
	case "inet":
		e.Network = "tcp4"
	case "inet6":
		e.Network = "tcp6"
	default:
		return at.fail("write any, inet or inet6", "AddressFamily %q", at.value())
	}
	e.BindAddress = o.first("bindaddress").value()
	e.ConnectTimeout = defaultConnectTimeout
	if at := o.first("connecttimeout"); at.value() != "" && !strings.EqualFold(at.value(), "none") {
		e.ConnectTimeout, err = parseTime(at.value())
		if err != nil || e.ConnectTimeout <= 0 {
			return at.fail("write seconds, such as 10", "ConnectTimeout %q is no time", at.value())
		}
	}
	e.HostKeyAlias = strings.ToLower(o.first("hostkeyalias").value())
	if e.HostKeyAlias != "" {
		if err := plainHost(e.HostKeyAlias); err != nil {
			return o.first("hostkeyalias").fail("give a name", "HostKeyAlias: %v", err)
		}
	}
	return nil
}

func (c Config) readJumps(e *Endpoint, o *options) error {
	command, jump := o.first("proxycommand"), o.first("proxyjump")
	// The first of the two in the files wins; a jump after a command that is
	// "none" counts.
	if v := command.value(); v != "" && !strings.EqualFold(v, "none") && (jump.value() == "" || o.before(command, jump)) {
		return command.fail("use ProxyJump for this host", "ProxyCommand %q: gangrun runs no command to reach a host", v)
	}
	if v := jump.value(); v != "" && !strings.EqualFold(v, "none") {
		for _, hop := range strings.Split(v, ",") {
			hop, err := c.tokens(*e, hop, "hnpr")
			if err == nil {
				_, err = parseTarget(strings.TrimSpace(hop))
			}
			if err != nil {
				return jump.fail("write ProxyJump USER@HOST:PORT,...", "ProxyJump: %v", err)
			}
			e.Jumps = append(e.Jumps, strings.TrimSpace(hop))
		}
	}
	return nil
}

// before says whether a was read before b.
func (o *options) before(a, b option) bool {
	if a.file != b.file {
		return !a.system && b.system || a.system == b.system && a.file < b.file
	}
	return a.line < b.line
}

func (c Config) readKnown(e *Endpoint, o *options) error {
	for _, k := range []struct {
		keyword  string
		defaults []string
	}{{"userknownhostsfile", c.KnownHosts}, {"globalknownhostsfile", c.GlobalKnownHosts}} {
		at := o.first(k.keyword)
		if at.value() == "" {
			e.KnownHosts = append(e.KnownHosts, k.defaults...)
			continue
		}
		for _, file := range at.args {
			if strings.EqualFold(file, "none") {
				continue
			}
			path, err := c.path(*e, file)
			if err != nil {
				return at.fail("name a file", "%v", err)
			}
			e.KnownHosts = append(e.KnownHosts, path)
		}
	}
	if at := o.first("revokedhostkeys"); at.value() != "" && !strings.EqualFold(at.value(), "none") {
		path, err := c.path(*e, at.value())
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		e.RevokedHostKeys = path
	}
	return nil
}

func (c Config) readKeys(e *Endpoint, o *options) error {
	for _, at := range o.lines["identityfile"] {
		e.IdentitiesNamed = true
		if strings.EqualFold(at.value(), "none") {
			continue
		}
		path, err := c.path(*e, at.value())
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		if !slices.Contains(e.Identities, path) {
			e.Identities = append(e.Identities, path)
		}
	}
	if !e.IdentitiesNamed {
		for _, name := range []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"} {
			e.Identities = append(e.Identities, filepath.Join(c.Home, ".ssh", name))
		}
	}
	for _, at := range o.lines["certificatefile"] {
		if strings.EqualFold(at.value(), "none") {
			continue
		}
		path, err := c.path(*e, at.value())
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		e.Certificates = append(e.Certificates, path)
	}
	for keyword, to := range map[string]*bool{"identitiesonly": &e.IdentitiesOnly} {
		yes, err := o.yes(keyword, false)
		if err != nil {
			return err
		}
		*to = yes
	}
	switch v := strings.ToLower(o.first("pubkeyauthentication").value()); v {
	case "no", "false":
		e.NoKeys = true
	}
	e.Agent = c.AgentSocket
	if at := o.first("identityagent"); at.value() != "" {
		switch v := at.value(); {
		case strings.EqualFold(v, "none"):
			e.Agent = ""
		case v == "SSH_AUTH_SOCK":
			e.Agent = c.getenv(v)
		case strings.HasPrefix(v, "$") && !strings.HasPrefix(v, "${"):
			e.Agent = c.getenv(v[1:])
		default:
			path, err := c.path(*e, v)
			if err != nil {
				return at.fail("name a socket", "%v", err)
			}
			e.Agent = path
		}
	}
	return nil
}

func (c Config) readAlgorithms(e *Endpoint, o *options) error {
	supported := xssh.SupportedAlgorithms()
	insecure := xssh.InsecureAlgorithms()
	for _, k := range []struct {
		keyword            string
		defaults, insecure []string
		to                 *[]string
	}{
		{"hostkeyalgorithms", supported.HostKeys, insecure.HostKeys, &e.HostKeyAlgorithms},
		{"kexalgorithms", supported.KeyExchanges, insecure.KeyExchanges, &e.KeyExchanges},
		{"ciphers", supported.Ciphers, insecure.Ciphers, &e.Ciphers},
		{"macs", supported.MACs, insecure.MACs, &e.MACs},
	} {
		at := o.first(k.keyword)
		if at.value() == "" {
			continue
		}
		*k.to = algorithms(at.value(), k.defaults, append(slices.Clone(k.defaults), k.insecure...))
		if len(*k.to) == 0 {
			return at.fail("add one of: "+strings.Join(k.defaults, ","), "%s %q leaves none that gangrun can do", k.keyword, at.value())
		}
	}
	return nil
}

// algorithms reads a list of algorithms: it replaces the defaults, or with +,
// - or ^ before it adds to their end, takes from them, or puts first.
func algorithms(list string, defaults, known []string) []string {
	sign := byte(0)
	if list != "" && strings.IndexByte("+-^", list[0]) >= 0 {
		sign, list = list[0], list[1:]
	}
	var named []string
	for _, pattern := range strings.Split(list, ",") {
		for _, name := range known {
			if matchPattern(name, pattern) && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(defaults), func(name string) bool { return slices.Contains(named, name) })
	switch sign {
	case '+':
		more := slices.DeleteFunc(named, func(name string) bool { return slices.Contains(defaults, name) })
		return append(slices.Clone(defaults), more...)
	case '-':
		return others
	case '^':
		return append(named, others...)
	}
	return named
}

func (o *options) yes(keyword string, otherwise bool) (bool, error) {
	at := o.first(keyword)
	switch strings.ToLower(at.value()) {
	case "":
		return otherwise, nil
	case "yes", "true":
		return true, nil
	case "no", "false":
		return false, nil
	}
	return false, at.fail("write yes or no", "%s %q", keyword, at.value())
}

// remark notes what the files ask for and gangrun does not do. What only the
// system's file says is kept for a login that fails: distributions set much
// there that nobody asked for.
func (o *options) remark(e *Endpoint) {
	say := func(keyword, consequence string, harmless ...string) {
		at := o.first(keyword)
		if v := strings.ToLower(at.value()); v != "" && !slices.Contains(harmless, v) && !at.system {
			o.note("%s:%d: %s %s: %s", at.file, at.line, keyword, at.value(), consequence)
		}
	}
	for _, method := range []string{"gssapiauthentication", "hostbasedauthentication", "pkcs11provider"} {
		if v := strings.ToLower(o.first(method).value()); v != "" && v != "no" && v != "none" && v != "false" {
			e.Unable = append(e.Unable, method)
		}
		say(method, "gangrun logs in with keys, certificates and ssh-agent only", "no", "none", "false")
	}
	say("stricthostkeychecking", "gangrun believes only hosts that known_hosts has", "yes", "ask")
	say("nohostauthenticationforlocalhost", "gangrun checks every host's key", "no")
	say("verifyhostkeydns", "gangrun does not ask DNS for host keys", "no")
	say("knownhostscommand", "gangrun runs no command for host keys", "none")
	say("canonicalizehostname", "gangrun takes names as they are", "no", "none")
	say("bindinterface", "gangrun does not choose the interface; BindAddress it can")
	say("pubkeyauthentication", "then there is no way to log in that gangrun knows", "yes", "true", "unbound", "host-bound")
	say("preferredauthentications", "gangrun logs in with keys, certificates and ssh-agent only", "publickey")
	say("remotecommand", "gangrun runs its own command", "none")
}

// parseTime reads seconds, or a sequence such as 1m30s.
func parseTime(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var total time.Duration
	for rest := strings.ToLower(s); rest != "" || s == ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is no time", s)
		}
		unit := time.Second
		rest = rest[digits:]
		if rest != "" {
			var ok bool
			if unit, ok = units[rest[0]]; !ok {
				return 0, fmt.Errorf("%q is no time", s)
			}
			rest = rest[1:]
		}
		if n > 0 && unit > (1<<62)/time.Duration(n) || total > 1<<62 {
			return 0, fmt.Errorf("%q is too long a time", s)
		}
		total += time.Duration(n) * unit
	}
	return total, nil
}
