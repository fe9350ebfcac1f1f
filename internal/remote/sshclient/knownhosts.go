package sshclient

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	xssh "golang.org/x/crypto/ssh"
)

// knownKey is the key in a line of a known_hosts file.
type knownKey struct {
	key   xssh.PublicKey
	where string // FILE:LINE
}

// knownHost holds the lines of known_hosts files that apply to one host.
type knownHost struct {
	keys        []knownKey // under its name and port
	portless    []knownKey // under its name alone, if its port is not 22; OpenSSH accepts these keys, too
	authorities []knownKey // @cert-authority
	revoked     []knownKey // @revoked, for any host
}

// lookupName returns the name under which known_hosts files have a host.
func lookupName(host string, port int) string {
	host = strings.ToLower(host)
	if port == sshconfig.DefaultPort {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// lookup returns the name under which known_hosts files have e, and the name without a port if the two differ.
func lookup(e sshconfig.Endpoint) (name, portless string) {
	if e.HostKeys.Alias != "" {
		return e.HostKeys.Alias, ""
	}
	name = lookupName(e.Host, e.Port)
	if e.Port != sshconfig.DefaultPort {
		portless = strings.ToLower(e.Host)
	}
	return name, portless
}

// readKnown reads the known_hosts files of e. A file that does not exist counts as an empty
// one. A line that cannot be parsed is ignored, as in OpenSSH, unless it could be a revocation.
func readKnown(e sshconfig.Endpoint) (knownHost, error) {
	var k knownHost
	name, portless := lookup(e)
	for _, file := range e.HostKeys.Files {
		data, err := sshconfig.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return knownHost{}, &sshconfig.Error{File: file, Text: err.Error(), Fix: "make the file readable, or name another as UserKnownHostsFile"}
		}
		if err := k.read(data, file, name, portless); err != nil {
			return knownHost{}, err
		}
	}
	if e.HostKeys.Revoked == "" {
		return k, nil
	}
	data, err := sshconfig.ReadFile(e.HostKeys.Revoked)
	if err != nil {
		return knownHost{}, &sshconfig.Error{File: e.HostKeys.Revoked, Text: err.Error(), Fix: "make the file readable: without it no host key can be checked"}
	}
	return k, k.readRevoked(data, e.HostKeys.Revoked)
}

// read adds the lines of a file that apply to the host.
func (k *knownHost) read(data []byte, file, name, portless string) error {
	for n, line := range bytes.Split(data, []byte("\n")) {
		marker, hosts, rest := splitKnown(string(line))
		if hosts == "" {
			continue
		}
		where := file + ":" + strconv.Itoa(n+1)
		exact := matchKnown(name, hosts)
		loose := !exact && portless != "" && matchKnown(portless, hosts)
		if marker != "@revoked" && !exact && !loose {
			continue
		}
		key, err := parseKey(rest)
		if err != nil {
			if marker == "@revoked" {
				return &sshconfig.Error{File: file, Line: n + 1, Text: "a @revoked key that cannot be parsed: " + err.Error(), Fix: "fix the line: without it, the key that it revokes would be accepted"}
			}
			continue
		}
		known := knownKey{key, where}
		switch {
		case marker == "@revoked":
			k.revoked = append(k.revoked, known)
		case marker == "@cert-authority":
			k.authorities = append(k.authorities, known)
		case marker != "":
		case exact:
			k.keys = append(k.keys, known)
		default:
			k.portless = append(k.portless, known)
		}
	}
	return nil
}

// readRevoked reads a file of public keys, one on each line.
func (k *knownHost) readRevoked(data []byte, file string) error {
	if bytes.HasPrefix(data, []byte("SSHKRL")) {
		return &sshconfig.Error{File: file, Text: "gangrun does not support key revocation lists (KRL)", Fix: "list the revoked public keys one a line, or set RevokedHostKeys none for these hosts"}
	}
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, _, _, _, err := xssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return &sshconfig.Error{File: file, Line: n + 1, Text: err.Error(), Fix: "fix the line: without it, the key that it revokes would be accepted"}
		}
		k.revoked = append(k.revoked, knownKey{key, file + ":" + strconv.Itoa(n+1)})
	}
	return nil
}

// splitKnown splits a line into its marker, the names of its hosts and the rest. Empty lines and
// comments have no names.
func splitKnown(line string) (marker, hosts, rest string) {
	line = strings.Trim(line, " \t\r")
	if line == "" || line[0] == '#' {
		return "", "", ""
	}
	word := func() (w string) {
		if i := strings.IndexAny(line, " \t"); i >= 0 {
			w, line = line[:i], strings.TrimLeft(line[i:], " \t")
			return w
		}
		w, line = line, ""
		return w
	}
	hosts = word()
	if hosts[0] == '@' {
		marker, hosts = hosts, word()
	}
	return marker, hosts, line
}

// parseKey parses "TYPE BASE64 [comment]".
func parseKey(s string) (xssh.PublicKey, error) {
	fields := strings.Fields(s)
	if len(fields) < 2 {
		return nil, errors.New("no key follows the names")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return nil, err
	}
	key, err := xssh.ParsePublicKey(blob)
	if err != nil {
		return nil, err
	}
	if key.Type() != fields[0] {
		return nil, fmt.Errorf("a %s key is called %q", key.Type(), fields[0])
	}
	return key, nil
}

// matchKnown reports whether the names of a line match name. The names are patterns with commas between them, or one
// hashed name.
func matchKnown(name, hosts string) bool {
	if !strings.HasPrefix(hosts, "|") {
		return sshconfig.MatchList(name, strings.ToLower(hosts))
	}
	parts := strings.Split(hosts, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	sum, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), sum)
}

// sameKey reports whether a and b are the same key.
func sameKey(a, b xssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// findKey returns the place of the line that has a key.
func findKey(keys []knownKey, key xssh.PublicKey) (string, bool) {
	for _, k := range keys {
		if sameKey(k.key, key) {
			return k.where, true
		}
	}
	return "", false
}

// algorithms returns the host key algorithms to ask the host for. The algorithms of known keys come first, so that a
// host whose Ed25519 key is known does not send its unknown RSA key. The algorithms of certificates are left out unless
// an authority is known.
func (k knownHost) algorithms(allowed []string) []string {
	if allowed == nil {
		allowed = xssh.SupportedAlgorithms().HostKeys
	}
	var known []string
	for _, key := range slices.Concat(k.keys, k.portless) {
		known = append(known, key.key.Type())
	}
	rank := func(algorithm string) int {
		switch {
		case strings.Contains(algorithm, "-cert-v01@"):
			return 0
		case slices.Contains(known, keyType(algorithm)):
			return 1
		}
		return 2
	}
	asked := slices.DeleteFunc(slices.Clone(allowed), func(algorithm string) bool {
		return len(k.authorities) == 0 && rank(algorithm) == 0
	})
	slices.SortStableFunc(asked, func(a, b string) int { return rank(a) - rank(b) })
	return asked
}

// keyType returns the type of the key that signs with an algorithm.
func keyType(algorithm string) string {
	switch algorithm {
	case xssh.KeyAlgoRSASHA256, xssh.KeyAlgoRSASHA512:
		return xssh.KeyAlgoRSA
	}
	return algorithm
}

// scanType returns the name of a key type for ssh-keyscan and in the names of host key files.
func scanType(keyType string) string {
	switch {
	case strings.Contains(keyType, "rsa"):
		return "rsa"
	case strings.Contains(keyType, "ecdsa"):
		return "ecdsa"
	case strings.Contains(keyType, "mldsa"):
		return keyType
	}
	return "ed25519"
}

// check returns nil if known_hosts accepts the key that the host of e has sent. Otherwise it returns a *HostKeyError.
func (k knownHost) check(e sshconfig.Endpoint, p Peer, shown xssh.PublicKey, now time.Time) error {
	plain := shown
	cert, isCert := shown.(*xssh.Certificate)
	if isCert {
		plain = cert.Key
	}
	name, _ := lookup(e)
	wrong := &HostKeyError{Peer: p, Problem: HostKeyUnknown, Type: plain.Type(), Fingerprint: xssh.FingerprintSHA256(plain),
		Lookup: name, Files: e.HostKeys.Files}
	if where, found := findKey(k.revoked, plain); found {
		wrong.Problem, wrong.Where = HostKeyRevoked, where
		return wrong
	}
	var certErr error
	if isCert {
		if where, found := findKey(k.revoked, cert.SignatureKey); found {
			wrong.Problem, wrong.Where = HostKeyRevoked, where
			return wrong
		}
		if where, found := findKey(k.authorities, cert.SignatureKey); found {
			if certErr = checkCert(e, cert, now); certErr == nil {
				return nil
			}
			wrong.Where = where
		}
	}
	if _, found := findKey(k.keys, plain); found {
		return nil
	}
	for _, key := range k.keys {
		if key.key.Type() == plain.Type() {
			wrong.Problem, wrong.Where = HostKeyChanged, key.where
			return wrong
		}
	}
	if _, found := findKey(k.portless, plain); found && len(k.keys) == 0 {
		return nil
	}
	if len(k.keys) > 0 {
		wrong.Where = k.keys[0].where
	}
	if certErr != nil {
		wrong.Problem, wrong.Err = HostKeyCertificate, certErr
	}
	return wrong
}

// checkCert checks a certificate that a known authority has signed. The principals of the certificate may be patterns.
func checkCert(e sshconfig.Endpoint, cert *xssh.Certificate, now time.Time) error {
	if cert.CertType != xssh.HostCert {
		return errors.New("it is not a host certificate")
	}
	name := strings.ToLower(e.Host)
	if e.HostKeys.Alias != "" {
		name = e.HostKeys.Alias
	}
	principal := name
	for _, p := range cert.ValidPrincipals {
		if sshconfig.MatchPattern(name, strings.ToLower(p)) {
			principal = p
			break
		}
	}
	checker := xssh.CertChecker{Clock: func() time.Time { return now }}
	return checker.CheckCert(principal, cert)
}

// callback returns a function for x/crypto/ssh that calls check and sets wrong to the error.
func (k knownHost) callback(e sshconfig.Endpoint, p Peer, wrong *error) xssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key xssh.PublicKey) error {
		*wrong = k.check(e, p, key, time.Now())
		return *wrong
	}
}
