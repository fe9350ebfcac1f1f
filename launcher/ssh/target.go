package ssh

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

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
