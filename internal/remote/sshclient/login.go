package sshclient

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	xssh "golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"
)

// personLimit limits the time in which a person must enter a passphrase, confirm a signature or touch a key. It is
// equal to the default LoginGraceTime of sshd.
const personLimit = 2 * time.Minute

// identity is a key or a certificate to offer to a host.
type identity struct {
	name   string // "key /home/a/.ssh/id_ed25519", "agent key ..."
	signer xssh.Signer
}

// login offers the identities of a user to one host, one after the other, and records the result
// of each.
type login struct {
	limit       *timeLimit
	idents      []identity
	skipped     []Skipped
	unsupported []string
	close       func() // closes the connection to ssh-agent

	mu      sync.Mutex
	next    int // index of the next identity in idents
	tried   []string
	methods []string // the methods that the host accepts
	started bool
	open    bool  // the result of the latest identity is not known yet
	failed  error // why the latest identity could not sign
	ended   bool  // all identities have been offered
}

// Skipped is a key, a certificate or an ssh-agent that could not be used for the login.
type Skipped struct {
	Name string
	Err  error // why
}

// String returns the name and the reason.
func (s Skipped) String() string { return s.Name + ": " + s.Err.Error() }

func joinSkipped(all []Skipped) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, ", ")
}

// Why a key or a certificate is skipped.
var (
	errEncrypted = errors.New("encrypted, and there is no terminal to ask for its passphrase on")
	errNoKeys    = errors.New("PubkeyAuthentication no")
	errMissing   = errors.New("it does not exist")
)

// newLogin collects the identities to offer, in OpenSSH's order. First come the keys of ssh-agent that ssh_config
// names, then the other keys of ssh-agent, and then the files. Each certificate comes before its key.
func (d *Dialer) newLogin(e sshconfig.Endpoint, limit *timeLimit) *login {
	l := &login{limit: limit, unsupported: e.Login.Unsupported, close: func() {}}
	if e.Login.NoKeys {
		l.skip("all keys", errNoKeys)
		return l
	}
	held := l.agentKeys(e.Login.Agent)
	var files []keyFile
	for _, path := range e.Login.Identities {
		var f keyFile
		if f, held = d.keyFile(l, path, e.Login.IdentitiesNamed, held); f.signer != nil {
			files = append(files, f)
		}
	}
	certs := l.certificates(e.Login)
	for _, f := range files {
		if f.agent {
			l.offer("agent key "+f.path, f.signer, certs)
		}
	}
	// If ssh_config names a key, it also names the certificates in ssh-agent for that key.
	for _, signer := range held {
		cert, isCert := agentCert(signer)
		if e.Login.IdentitiesOnly && !(isCert && slices.ContainsFunc(files, func(f keyFile) bool { return sameKey(f.public, cert.Key) })) {
			continue
		}
		name := "agent key"
		if isCert {
			name = "agent certificate"
		}
		l.offer(name, signer, certs)
	}
	for _, f := range files {
		if !f.agent {
			l.offer("key "+f.path, f.signer, certs)
		}
	}
	return l
}

// keyFile is a private key file. If ssh-agent has the key of the file, ssh-agent signs.
type keyFile struct {
	path   string
	public xssh.PublicKey
	signer xssh.Signer // nil if the file is not to be offered
	agent  bool        // ssh-agent has the key, and signs
}

// keyFile looks in held, the keys of ssh-agent, for the key of a file. If the key is not there, keyFile uses the file.
// It returns held without that key.
func (d *Dialer) keyFile(l *login, path string, named bool, held []xssh.Signer) (keyFile, []xssh.Signer) {
	f := keyFile{path: path}
	k, err := d.keys.key(path)
	if err == nil {
		f.public = k.public
	} else {
		f.public, _ = readPublic(path + ".pub")
	}
	i := slices.IndexFunc(held, func(s xssh.Signer) bool { return f.public != nil && sameKey(s.PublicKey(), f.public) })
	switch {
	case i >= 0:
		f.signer, f.agent = held[i], true
		return f, slices.Delete(held, i, i+1)
	case errors.Is(err, fs.ErrNotExist):
		if named {
			l.skip(path, errMissing)
		}
		return f, held
	case err != nil:
		l.skip(path, err)
		return f, held
	case d.Ask == nil && k.needsPassphrase():
		l.skip(path, errEncrypted)
		return f, held
	}
	open := func() (xssh.Signer, error) { return d.keys.open(k, d.Ask) }
	if f.public == nil { // an old format, in which the public key is encrypted, too
		resume := l.limit.extend(personLimit)
		signer, err := open()
		resume()
		if err != nil {
			l.skip(path, err)
			return f, held
		}
		f.public = signer.PublicKey()
	}
	if why := k.useless(); why != nil {
		l.skip(path, why)
		return f, held
	}
	f.signer = &lazySigner{f.public, open}
	return f, held
}

// certFile is a certificate for a key.
type certFile struct {
	path string
	cert *xssh.Certificate
}

// certificates reads the certificates that ssh_config names, and the certificates beside the key files.
func (l *login) certificates(from sshconfig.Login) (certs []certFile) {
	read := func(path string, named bool) {
		public, err := readPublic(path)
		cert, ok := public.(*xssh.Certificate)
		switch {
		case ok:
			certs = append(certs, certFile{path, cert})
		case named && errors.Is(err, fs.ErrNotExist):
			l.skip(path, errMissing)
		case named:
			l.skip(path, errors.New("it is not a certificate"))
		}
	}
	for _, path := range from.Certificates {
		read(path, true)
	}
	for _, path := range from.Identities {
		read(path+"-cert.pub", false)
	}
	return certs
}

// offer adds a key after the certificates for that key.
func (l *login) offer(name string, signer xssh.Signer, certs []certFile) {
	for _, c := range certs {
		if sameKey(c.cert.Key, signer.PublicKey()) {
			if s, err := xssh.NewCertSigner(c.cert, signer); err == nil {
				l.add("certificate "+c.path, s)
			}
		}
	}
	l.add(name, signer)
}

// agentCert returns the certificate of a signer of ssh-agent, if the signer has one.
func agentCert(s xssh.Signer) (*xssh.Certificate, bool) {
	public, err := xssh.ParsePublicKey(s.PublicKey().Marshal())
	if err != nil {
		return nil, false
	}
	cert, ok := public.(*xssh.Certificate)
	return cert, ok
}

// skip records that name is not offered.
func (l *login) skip(name string, why error) { l.skipped = append(l.skipped, Skipped{name, why}) }

// add adds an identity.
func (l *login) add(name string, signer xssh.Signer) {
	fingerprint := xssh.FingerprintSHA256(signer.PublicKey())
	if cert, ok := signer.PublicKey().(*xssh.Certificate); ok {
		fingerprint = xssh.FingerprintSHA256(cert.Key)
	}
	l.idents = append(l.idents, identity{name + " (" + fingerprint + ")", newSlowSigner(signer, l)})
}

// agentKeys returns the keys of the ssh-agent at a socket. It skips an agent that does not answer.
func (l *login) agentKeys(socket string) []xssh.Signer {
	if socket == "" {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(l.limit.ctx, "unix", socket)
	if err != nil {
		l.skip("ssh-agent at "+socket, err)
		return nil
	}
	stop := context.AfterFunc(l.limit.ctx, func() { conn.Close() })
	l.close = func() { stop(); conn.Close() }
	signers, err := sshagent.NewClient(conn).Signers()
	if err != nil {
		l.skip("ssh-agent at "+socket, err)
		return nil
	}
	if len(signers) == 0 {
		l.skip("ssh-agent at "+socket, errors.New("it holds no key"))
	}
	return signers
}

// began reports whether the host has asked for a login.
func (l *login) began() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

// method returns the next identity to try. x/crypto/ssh calls it.
func (l *login) method(ctx *xssh.ClientAuthContext) (xssh.AuthMethod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle("refused")
	l.started = true
	l.methods = ctx.AllowedMethods
	if !slices.Contains(ctx.AllowedMethods, "publickey") || l.next == len(l.idents) {
		l.ended = true
		return nil, errors.New("all keys have been offered")
	}
	l.tried = append(l.tried, l.idents[l.next].name)
	l.next++
	l.open = true
	return xssh.PublicKeys(l.idents[l.next-1].signer), nil
}

// settle records the result of the latest identity. The caller holds l.mu.
func (l *login) settle(outcome string) {
	if !l.open {
		return
	}
	if l.failed != nil {
		outcome = l.failed.Error()
	}
	l.tried[l.next-1] += ": " + outcome
	l.open, l.failed = false, nil
}

// error returns the error of a login that has failed. err is the error of the connection.
func (l *login) error(p Peer, err error) *AuthError {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle("refused")
	if l.ended {
		err = nil
	}
	return &AuthError{Peer: p, Tried: l.tried, Skipped: l.skipped, Methods: l.methods, Unsupported: l.unsupported, Err: err}
}
