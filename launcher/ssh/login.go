package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"
)

// loginPatience is how long a person or an agent has for a passphrase, a
// confirmation or a touch; sshd's own LoginGraceTime is 2 minutes.
const loginPatience = 2 * time.Minute

// An identity is one thing to offer to a host.
type identity struct {
	name   string // "key /home/a/.ssh/id_ed25519", "agent key ..."
	signer xssh.Signer
}

// A login offers a user's identities to one host, one after the other, and
// remembers what became of each.
type login struct {
	endpoint Endpoint
	idents   []identity
	skipped  []string
	close    func() // hangs up on the agent

	mu      sync.Mutex
	next    int
	tried   []string
	offers  []string
	started bool
	open    bool  // what became of the latest one is not known yet
	failed  error // why the latest one could not sign
	ended   bool  // there was nothing left to offer
}

// newLogin gathers what there is to offer, in OpenSSH's order: the agent's keys
// that ssh_config names, the agent's others, then the files; each certificate
// before its key.
func (d *Dialer) newLogin(e Endpoint, patience *patience) *login {
	l := &login{endpoint: e, close: func() {}}
	if e.NoKeys {
		l.skipped = append(l.skipped, "all keys (PubkeyAuthentication no)")
		return l
	}
	held := l.agentKeys(e, patience)
	type file struct {
		path   string
		public xssh.PublicKey
		signer xssh.Signer
		agent  bool
	}
	var files []file
	for _, path := range e.Identities {
		k, err := d.keys.key(path)
		f := file{path: path}
		if err == nil {
			f.public = k.public
		} else {
			f.public, _ = readPublic(path + ".pub")
		}
		i := slices.IndexFunc(held, func(s xssh.Signer) bool { return f.public != nil && sameKey(s.PublicKey(), f.public) })
		switch {
		case i >= 0:
			f.signer, f.agent = held[i], true
			held = slices.Delete(held, i, i+1)
		case errors.Is(err, fs.ErrNotExist):
			if e.IdentitiesNamed {
				l.skip(path, "it does not exist")
			}
			continue
		case err != nil:
			l.skip(path, err.Error())
			continue
		case d.Ask == nil && k.needsPassphrase():
			l.skip(path, errNoTerminal.Error())
			continue
		default:
			open := func() (xssh.Signer, error) { return d.keys.open(k, d.Ask) }
			if f.public == nil { // an old format, which shows its public half only when opened
				resume := patience.wait(loginPatience)
				signer, err := open()
				resume()
				if err != nil {
					l.skip(path, err.Error())
					continue
				}
				f.public = signer.PublicKey()
			}
			if why := k.useless(); why != nil {
				l.skip(path, why.Error())
				continue
			}
			f.signer = &lazySigner{f.public, open}
		}
		files = append(files, f)
	}
	var certs []*xssh.Certificate
	var certNames []string
	addCert := func(path string, named bool) {
		public, err := readPublic(path)
		cert, ok := public.(*xssh.Certificate)
		switch {
		case ok:
			certs, certNames = append(certs, cert), append(certNames, path)
		case named && errors.Is(err, fs.ErrNotExist):
			l.skip(path, "it does not exist")
		case named:
			l.skip(path, "it is no certificate")
		}
	}
	for _, path := range e.Certificates {
		addCert(path, true)
	}
	for _, path := range e.Identities {
		addCert(path+"-cert.pub", false)
	}
	offer := func(name string, signer xssh.Signer) {
		for i, cert := range certs {
			if sameKey(cert.Key, signer.PublicKey()) {
				if s, err := xssh.NewCertSigner(cert, signer); err == nil {
					l.add("certificate "+certNames[i], s, patience)
				}
			}
		}
		l.add(name, signer, patience)
	}
	for _, f := range files {
		if f.agent {
			offer("agent key "+f.path, f.signer)
		}
	}
	// A certificate in the agent counts as named where its key is.
	for _, signer := range held {
		cert, isCert := agentCert(signer)
		if e.IdentitiesOnly && !(isCert && slices.ContainsFunc(files, func(f file) bool { return sameKey(f.public, cert.Key) })) {
			continue
		}
		name := "agent key"
		if isCert {
			name = "agent certificate"
		}
		offer(name, signer)
	}
	for _, f := range files {
		if !f.agent {
			offer("key "+f.path, f.signer)
		}
	}
	return l
}

func agentCert(s xssh.Signer) (*xssh.Certificate, bool) {
	public, err := xssh.ParsePublicKey(s.PublicKey().Marshal())
	if err != nil {
		return nil, false
	}
	cert, ok := public.(*xssh.Certificate)
	return cert, ok
}

func (l *login) skip(path, why string) { l.skipped = append(l.skipped, path+": "+why) }

func (l *login) add(name string, signer xssh.Signer, patience *patience) {
	fingerprint := xssh.FingerprintSHA256(signer.PublicKey())
	if cert, ok := signer.PublicKey().(*xssh.Certificate); ok {
		fingerprint = xssh.FingerprintSHA256(cert.Key)
	}
	l.idents = append(l.idents, identity{name + " (" + fingerprint + ")", patientSigner(signer, patience, l)})
}

// agentKeys asks the agent for its keys. An agent that is not there is a line
// in what was left out, no more.
func (l *login) agentKeys(e Endpoint, patience *patience) []xssh.Signer {
	if e.Agent == "" {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(patience.ctx, "unix", e.Agent)
	if err != nil {
		l.skipped = append(l.skipped, fmt.Sprintf("ssh-agent at %s: %v", e.Agent, err))
		return nil
	}
	stop := context.AfterFunc(patience.ctx, func() { conn.Close() })
	l.close = func() { stop(); conn.Close() }
	signers, err := sshagent.NewClient(conn).Signers()
	if err != nil {
		l.skipped = append(l.skipped, fmt.Sprintf("ssh-agent at %s: %v", e.Agent, err))
		return nil
	}
	if len(signers) == 0 {
		l.skipped = append(l.skipped, fmt.Sprintf("ssh-agent at %s: it holds no key", e.Agent))
	}
	return signers
}

// began says whether the host got as far as asking who logs in.
func (l *login) began() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

// method is x/crypto's question for what to try next.
func (l *login) method(ctx *xssh.ClientAuthContext) (xssh.AuthMethod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle("refused")
	l.started = true
	l.offers = ctx.AllowedMethods
	if !slices.Contains(ctx.AllowedMethods, "publickey") || l.next == len(l.idents) {
		l.ended = true
		return nil, errors.New("nothing is left to offer")
	}
	l.tried = append(l.tried, l.idents[l.next].name)
	l.next++
	l.open = true
	return xssh.PublicKeys(l.idents[l.next-1].signer), nil
}

// settle writes what became of the latest identity offered. The caller holds
// l.mu.
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

// error is the login's failure; err is what the connection said.
func (l *login) error(p Peer, err error) *AuthError {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle("refused")
	if l.ended {
		err = nil
	}
	return &AuthError{Peer: p, Tried: l.tried, Skipped: l.skipped, Offers: l.offers, Unable: l.endpoint.Unable, Err: err}
}

// patientSigner lets a signature take a person's time.
func patientSigner(s xssh.Signer, p *patience, l *login) xssh.Signer {
	as, ok := s.(xssh.AlgorithmSigner)
	if !ok {
		return s
	}
	ps := &pausing{as, p, l}
	if m, ok := s.(xssh.MultiAlgorithmSigner); ok {
		return &pausingMany{ps, m}
	}
	return ps
}

type pausing struct {
	xssh.AlgorithmSigner
	patience *patience
	login    *login
}

// Format prints nothing of the key.
func (p *pausing) Format(f fmt.State, _ rune) { fmt.Fprint(f, "signer") }

// SignWithAlgorithm signs, and keeps why it could not.
func (p *pausing) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*xssh.Signature, error) {
	resume := p.patience.wait(loginPatience)
	defer resume()
	sig, err := p.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil {
		p.login.mu.Lock()
		p.login.failed = err
		p.login.mu.Unlock()
	}
	return sig, err
}

type pausingMany struct {
	*pausing
	many xssh.MultiAlgorithmSigner
}

// Algorithms are those by which the key can sign.
func (p *pausingMany) Algorithms() []string { return p.many.Algorithms() }
