package sshconfig

import (
	"crypto/sha1"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// allTokens are the tokens that the name of a file may have.
const allTokens = "CdhijkLlnpru"

// getenv returns the value of an environment variable.
func (c Config) getenv(name string) string {
	if c.Getenv == nil {
		return ""
	}
	return c.Getenv(name)
}

// path expands ~, tokens and ${NAME} in the name of a file.
func (c Config) path(e Endpoint, s string) (string, error) {
	s, err := c.tilde(s)
	if err != nil {
		return "", err
	}
	if s, err = c.environment(s); err != nil {
		return "", err
	}
	return c.tokens(e, s, allTokens)
}

// tilde expands ~/ and ~USER/ at the beginning of s.
func (c Config) tilde(s string) (string, error) {
	if !strings.HasPrefix(s, "~") {
		return s, nil
	}
	name, rest, _ := strings.Cut(s[1:], "/")
	home := c.Home
	if name != "" && name != c.User {
		u, err := user.Lookup(name)
		if err != nil {
			return "", fmt.Errorf("%q: there is no user %q on this machine", s, name)
		}
		home = u.HomeDir
	}
	return filepath.Join(home, rest), nil
}

// environment expands ${NAME}. A variable that is not set is an error, as in OpenSSH.
func (c Config) environment(s string) (string, error) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok || name == "" {
			return "", fmt.Errorf("%q: ${ without a name and }", s)
		}
		value := c.getenv(name)
		if value == "" {
			return "", fmt.Errorf("%q: the environment has no %s", s, name)
		}
		b.WriteString(value)
		s = rest
	}
}

// tokens expands the %-tokens in s. A token that is not in allowed is an error.
func (c Config) tokens(e Endpoint, s, allowed string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", fmt.Errorf("%q ends in %%", s)
		}
		if s[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if strings.IndexByte(allowed, s[i]) < 0 {
			return "", fmt.Errorf("%q: %%%c means nothing here", s, s[i])
		}
		b.WriteString(c.token(e, s[i]))
	}
	return b.String(), nil
}

// token returns the value of a token.
func (c Config) token(e Endpoint, t byte) string {
	short, _, _ := strings.Cut(c.Hostname, ".")
	switch t {
	case 'C':
		return fmt.Sprintf("%x", sha1.Sum([]byte(c.Hostname+e.Host+strconv.Itoa(e.Port)+e.User+strings.Join(e.Jumps, ","))))
	case 'd':
		return c.Home
	case 'h':
		return e.Host
	case 'i':
		return strconv.Itoa(c.UID)
	case 'j':
		return strings.Join(e.Jumps, ",")
	case 'k':
		if e.HostKeys.Alias != "" {
			return e.HostKeys.Alias
		}
		return e.Name
	case 'L':
		return short
	case 'l':
		return c.Hostname
	case 'n':
		return e.Name
	case 'p':
		return strconv.Itoa(e.Port)
	case 'r':
		return e.User
	}
	return c.User // u
}
