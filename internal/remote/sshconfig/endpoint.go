package sshconfig

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readAddress sets the address of e, and how to connect to it.
func (c Config) readAddress(e *Endpoint, o *options) (err error) {
	if at := o.first("port"); e.Port == 0 && at.value() != "" {
		if e.Port, err = parsePort(at.value()); err != nil {
			return at.fail("give a port", "Port %v", err)
		}
	}
	if e.Port == 0 {
		e.Port = DefaultPort
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
			return at.fail("write seconds, such as 10", "ConnectTimeout %q is not a time", at.value())
		}
	}
	e.HostKeys.Alias = strings.ToLower(o.first("hostkeyalias").value())
	if e.HostKeys.Alias != "" {
		if err := checkName(e.HostKeys.Alias); err != nil {
			return o.first("hostkeyalias").fail("give a name", "HostKeyAlias: %v", err)
		}
	}
	return nil
}

// readJumps sets the jump hosts of e.
func (c Config) readJumps(e *Endpoint, o *options) error {
	command, jump := o.first("proxycommand"), o.first("proxyjump")
	// Of the two, the first one in the files counts, even if it is "ProxyCommand none".
	if v := command.value(); v != "" && (jump.value() == "" || command.order < jump.order) {
		if strings.EqualFold(v, "none") {
			return nil
		}
		return command.fail("use ProxyJump for this host", "ProxyCommand %q: gangrun runs no command to reach a host", v)
	}
	if v := jump.value(); v != "" && !strings.EqualFold(v, "none") {
		for _, hop := range strings.Split(v, ",") {
			hop, err := c.tokens(*e, hop, "hnpr")
			if err == nil {
				_, err = ParseHost(strings.TrimSpace(hop))
			}
			if err != nil {
				return jump.fail("write ProxyJump USER@HOST:PORT,...", "ProxyJump: %v", err)
			}
			e.Jumps = append(e.Jumps, strings.TrimSpace(hop))
		}
	}
	return nil
}

// readKnown sets how the host key of e is checked.
func (c Config) readKnown(e *Endpoint, o *options) error {
	for _, k := range []struct {
		keyword  string
		defaults []string
	}{{"userknownhostsfile", c.KnownHosts}, {"globalknownhostsfile", c.GlobalKnownHosts}} {
		at := o.first(k.keyword)
		if at.value() == "" {
			e.HostKeys.Files = append(e.HostKeys.Files, k.defaults...)
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
			e.HostKeys.Files = append(e.HostKeys.Files, path)
		}
	}
	if at := o.first("revokedhostkeys"); at.value() != "" && !strings.EqualFold(at.value(), "none") {
		path, err := c.path(*e, at.value())
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		e.HostKeys.Revoked = path
	}
	return nil
}

func (c Config) readKeys(e *Endpoint, o *options) error {
	for _, at := range o.lines["identityfile"] {
		e.Login.IdentitiesNamed = true
		if strings.EqualFold(at.value(), "none") {
			continue
		}
		path, err := c.path(*e, at.value())
		if err != nil {
			return at.fail("name a file", "%v", err)
		}
		if !slices.Contains(e.Login.Identities, path) {
			e.Login.Identities = append(e.Login.Identities, path)
		}
	}
	if !e.Login.IdentitiesNamed {
		for _, name := range []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"} {
			e.Login.Identities = append(e.Login.Identities, filepath.Join(c.Home, ".ssh", name))
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
		e.Login.Certificates = append(e.Login.Certificates, path)
	}
	only, err := o.yes("identitiesonly")
	if err != nil {
		return err
	}
	e.Login.IdentitiesOnly = only
	if v := strings.ToLower(o.first("pubkeyauthentication").value()); v == "no" || v == "false" {
		e.Login.NoKeys = true
	}
	e.Login.Agent = c.AgentSocket
	if at := o.first("identityagent"); at.value() != "" {
		switch v := at.value(); {
		case strings.EqualFold(v, "none"):
			e.Login.Agent = ""
		case v == "SSH_AUTH_SOCK":
			e.Login.Agent = c.getenv(v)
		case strings.HasPrefix(v, "$") && !strings.HasPrefix(v, "${"):
			e.Login.Agent = c.getenv(v[1:])
		default:
			path, err := c.path(*e, v)
			if err != nil {
				return at.fail("name a socket", "%v", err)
			}
			e.Login.Agent = path
		}
	}
	return nil
}

// yes returns the value of a yes/no keyword. It returns false if the keyword is not set.
func (o *options) yes(keyword string) (bool, error) {
	at := o.first(keyword)
	switch strings.ToLower(at.value()) {
	case "yes", "true":
		return true, nil
	case "", "no", "false":
		return false, nil
	}
	return false, at.fail("write yes or no", "%s %q", keyword, at.value())
}

// noteUnsupported adds a note for each setting that gangrun does not support. It adds no note for a setting that is
// only in the system's file, because distributions set many things there that the user did not ask for. If a login
// fails, the error names such settings.
func (o *options) noteUnsupported(e *Endpoint) {
	say := func(keyword, consequence string, harmless ...string) {
		at := o.first(keyword)
		if v := strings.ToLower(at.value()); v != "" && !slices.Contains(harmless, v) && !at.system {
			o.note("%s:%d: %s %s: %s", at.file, at.line, keyword, at.value(), consequence)
		}
	}
	for _, method := range []string{"gssapiauthentication", "hostbasedauthentication", "pkcs11provider"} {
		if v := strings.ToLower(o.first(method).value()); v != "" && v != "no" && v != "none" && v != "false" {
			e.Login.Unsupported = append(e.Login.Unsupported, method)
		}
		say(method, "gangrun logs in with keys, certificates and ssh-agent only", "no", "none", "false")
	}
	say("stricthostkeychecking", "gangrun connects only to hosts whose key is in known_hosts", "yes", "ask")
	say("nohostauthenticationforlocalhost", "gangrun checks every host's key", "no")
	say("verifyhostkeydns", "gangrun does not ask DNS for host keys", "no")
	say("knownhostscommand", "gangrun runs no command for host keys", "none")
	say("canonicalizehostname", "gangrun does not change the names of hosts", "no", "none")
	say("bindinterface", "gangrun does not choose the interface; it supports BindAddress")
	say("pubkeyauthentication", "gangrun has no other way to log in", "yes", "true", "unbound", "host-bound")
	say("preferredauthentications", "gangrun logs in with keys, certificates and ssh-agent only", "publickey")
	say("remotecommand", "gangrun runs its own command", "none")
}

// parseTime parses a number of seconds, or a sequence such as 1m30s.
func parseTime(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var total time.Duration
	for rest := strings.ToLower(s); rest != "" || s == ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time", s)
		}
		unit := time.Second
		rest = rest[digits:]
		if rest != "" {
			var ok bool
			if unit, ok = units[rest[0]]; !ok {
				return 0, fmt.Errorf("%q is not a time", s)
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
