package sshclient

import (
	"fmt"
	"io"

	xssh "golang.org/x/crypto/ssh"
)

// newSlowSigner returns a signer that extends the time limit of the login to personLimit while it signs. A person may
// have to confirm each signature.
func newSlowSigner(s xssh.Signer, l *login) xssh.Signer {
	as, ok := s.(xssh.AlgorithmSigner)
	if !ok {
		return s
	}
	slow := &slowSigner{as, l}
	if m, ok := s.(xssh.MultiAlgorithmSigner); ok {
		return &slowMultiSigner{slow, m}
	}
	return slow
}

type slowSigner struct {
	xssh.AlgorithmSigner
	login *login
}

// Format does not print the key.
func (s *slowSigner) Format(f fmt.State, _ rune) { fmt.Fprint(f, "signer") }

// SignWithAlgorithm signs. If signing fails, it records the reason.
func (s *slowSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*xssh.Signature, error) {
	resume := s.login.limit.extend(personLimit)
	defer resume()
	sig, err := s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if err != nil {
		s.login.mu.Lock()
		s.login.failed = err
		s.login.mu.Unlock()
	}
	return sig, err
}

type slowMultiSigner struct {
	*slowSigner
	multi xssh.MultiAlgorithmSigner
}

// Algorithms returns the algorithms with which the key can sign.
func (s *slowMultiSigner) Algorithms() []string { return s.multi.Algorithms() }

// lazySigner opens its key only when a host asks for the signature.
type lazySigner struct {
	public xssh.PublicKey
	open   func() (xssh.Signer, error)
}

// Format does not print the key.
func (s *lazySigner) Format(f fmt.State, _ rune) { fmt.Fprint(f, "signer") }

// PublicKey returns the public half of the key.
func (s *lazySigner) PublicKey() xssh.PublicKey { return s.public }

// Sign signs with the default algorithm of the key.
func (s *lazySigner) Sign(rand io.Reader, data []byte) (*xssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

// Algorithms returns the algorithms with which the key can sign.
func (s *lazySigner) Algorithms() []string {
	if s.public.Type() == xssh.KeyAlgoRSA {
		return []string{xssh.KeyAlgoRSASHA512, xssh.KeyAlgoRSASHA256}
	}
	return []string{s.public.Type()}
}

// SignWithAlgorithm decrypts the key and signs.
func (s *lazySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*xssh.Signature, error) {
	signer, err := s.open()
	if err != nil {
		return nil, err
	}
	if as, ok := signer.(xssh.AlgorithmSigner); ok && algorithm != "" {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return signer.Sign(rand, data)
}
