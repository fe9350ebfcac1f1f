package ssh

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

	xssh "golang.org/x/crypto/ssh"
)

// A knownKey is one line of a known_hosts file that speaks of a host.
type knownKey struct {
	key   xssh.PublicKey
	where string // FILE:LINE
}

// knownHost is what known_hosts files say of one host.
type knownHost struct {
	keys        []knownKey // under its name and port
	portless    []knownKey // under its name alone, where its port is not 22: OpenSSH believes these too
	authorities []knownKey // @cert-authority
	revoked     []knownKey // @revoked, of any host
}

// lookupName is the name under which known_hosts files have a host.
func lookupName(host string, port int) string {
	host = strings.ToLower(host)
	if port == DefaultPort {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// lookup is the name under which e is looked up, and the one without a port,
// "" where that is no other.
func (e Endpoint) lookup() (name, portless string) {
	if e.HostKeyAlias != "" {
		return e.HostKeyAlias, ""
	}
	name = lookupName(e.Host, e.Port)
	if e.Port != DefaultPort {
		portless = strings.ToLower(e.Host)
	}
	return name, portless
}

// readKnown reads what e's files say of it. A file that does not exist says
// nothing; a line that cannot be read is passed over, as OpenSSH does, except
// where it could have been a revocation.
func readKnown(e Endpoint) (knownHost, error) {
	var k knownHost
	name, portless := e.lookup()
	for _, file := range e.KnownHosts {
		data, err := readSetting(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return knownHost{}, &ConfigError{File: file, Text: err.Error(), Fix: "make the file readable, or name another as UserKnownHostsFile"}
		}
		if err := k.read(data, file, name, portless); err != nil {
			return knownHost{}, err
		}
	}
	if e.RevokedHostKeys == "" {
		return k, nil
	}
	data, err := readSetting(e.RevokedHostKeys)
	if err != nil {
		return knownHost{}, &ConfigError{File: e.RevokedHostKeys, Text: err.Error(), Fix: "make the file readable: without it no host can be believed"}
	}
	return k, k.readRevoked(data, e.RevokedHostKeys)
}

// read takes what data says of the host.
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
				return &ConfigError{File: file, Line: n + 1, Text: "a @revoked key that cannot be read: " + err.Error(), Fix: "mend the line: what it revokes would be believed"}
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

// readRevoked reads a file of public keys, one a line.
func (k *knownHost) readRevoked(data []byte, file string) error {
	if bytes.HasPrefix(data, []byte("SSHKRL")) {
		return &ConfigError{File: file, Text: "gangrun reads no key revocation list (KRL)", Fix: "list the revoked public keys one a line, or set RevokedHostKeys none for these hosts"}
	}
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, _, _, _, err := xssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return &ConfigError{File: file, Line: n + 1, Text: err.Error(), Fix: "mend the line: what it revokes would be believed"}
		}
		k.revoked = append(k.revoked, knownKey{key, file + ":" + strconv.Itoa(n+1)})
	}
	return nil
}

// splitKnown takes a line apart: its marker, its names, and the rest. Empty
// lines and comments have no names.
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

// parseKey reads "TYPE BASE64 [comment]".
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

// matchKnown says whether the names of a line mean name: patterns with commas
// between them, or one hashed name.
func matchKnown(name, hosts string) bool {
	if !strings.HasPrefix(hosts, "|") {
		return matchList(name, strings.ToLower(hosts))
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

func sameKey(a, b xssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

func findKey(keys []knownKey, key xssh.PublicKey) (string, bool) {
	for _, k := range keys {
		if sameKey(k.key, key) {
			return k.where, true
		}
	}
	return "", false
}

// algorithms are those to ask the host for: the known kinds first, so that a
// host whose ed25519 key is known does not show its unknown RSA key instead.
// Certificates are asked for only where an authority is known.
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
	// Ed25519 first among equals, then as x/crypto has them.
	slices.SortStableFunc(asked, func(a, b string) int { return rank(a) - rank(b) })
	return asked
}

// keyType is the type of key that signs by an algorithm.
func keyType(algorithm string) string {
	switch algorithm {
	case xssh.KeyAlgoRSASHA256, xssh.KeyAlgoRSASHA512:
		return xssh.KeyAlgoRSA
	}
	return algorithm
}

// scanType is what ssh-keyscan and the names of host key files call a type.
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

// check judges the key that the host of e showed; nil means that it is the
// host meant, else it is a *HostKeyError.
func (k knownHost) check(e Endpoint, p Peer, shown xssh.PublicKey, now time.Time) error {
	plain := shown
	cert, isCert := shown.(*xssh.Certificate)
	if isCert {
		plain = cert.Key
	}
	name, _ := e.lookup()
	wrong := &HostKeyError{Peer: p, Problem: HostKeyUnknown, Type: plain.Type(), Fingerprint: xssh.FingerprintSHA256(plain),
		Lookup: name, Files: e.KnownHosts}
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

// checkCert checks a certificate signed by a known authority. Its principals
// may be patterns.
func checkCert(e Endpoint, cert *xssh.Certificate, now time.Time) error {
	if cert.CertType != xssh.HostCert {
		return errors.New("it is not one for hosts")
	}
	name := strings.ToLower(e.Host)
	if e.HostKeyAlias != "" {
		name = e.HostKeyAlias
	}
	principal := name
	for _, p := range cert.ValidPrincipals {
		if matchPattern(name, strings.ToLower(p)) {
			principal = p
			break
		}
	}
	checker := xssh.CertChecker{Clock: func() time.Time { return now }}
	return checker.CheckCert(principal, cert)
}

// callback is the check as x/crypto calls it; what it refuses is kept in wrong.
func (k knownHost) callback(e Endpoint, p Peer, wrong *error) xssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key xssh.PublicKey) error {
		*wrong = k.check(e, p, key, time.Now())
		return *wrong
	}
}
