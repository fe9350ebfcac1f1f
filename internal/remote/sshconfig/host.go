package sshconfig

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Host is a host as a person writes it.
type Host struct {
	Name string
	User string // empty if none was given
	Port int    // 0 if none was given
}

// ParseHost parses [ssh://][USER@]HOST[:PORT]. If a port follows an IPv6 address, the address
// must be in brackets.
func ParseHost(s string) (Host, error) {
	bad := func(format string, args ...any) (Host, error) {
		return Host{}, &Error{Text: fmt.Sprintf("host %q: ", s) + fmt.Sprintf(format, args...), Fix: "write HOST, USER@HOST or USER@HOST:PORT"}
	}
	var h Host
	rest := strings.TrimSuffix(strings.TrimPrefix(s, "ssh://"), "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		h.User, rest = rest[:i], rest[i+1:]
		if err := checkUser(h.User); err != nil {
			return bad("%v", err)
		}
	}
	h.Name = rest
	if strings.HasPrefix(rest, "[") || strings.Count(rest, ":") == 1 {
		host, port, err := net.SplitHostPort(rest)
		if inner, ok := strings.CutSuffix(rest, "]"); ok && strings.HasPrefix(rest, "[") {
			host, port, err = inner[1:], "", nil
		}
		if err != nil {
			return bad("%v", err)
		}
		h.Name = host
		if port != "" {
			if h.Port, err = parsePort(port); err != nil {
				return bad("%v", err)
			}
		} else if !strings.HasSuffix(rest, "]") {
			return bad("no port follows the colon")
		}
	}
	if err := checkName(h.Name); err != nil {
		return bad("%v", err)
	}
	return h, nil
}

func parsePort(s string) (int, error) {
	port, err := strconv.Atoi(s)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%q is not a port (1 to 65535)", s)
	}
	return port, nil
}

// checkName refuses names that no host has and that a shell could misread. Hints contain the names, and people copy
// hints into a shell.
func checkName(s string) error {
	if s == "" {
		return fmt.Errorf("it has no name")
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

func checkUser(s string) error {
	if s == "" {
		return fmt.Errorf("no user is before the @")
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
