package ssh

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	xssh "golang.org/x/crypto/ssh"

	"github.com/gangrun/gangrun/internal/safefile"
)

// maxAsks is how often a passphrase is asked for before the key is left out.
const maxAsks = 3

var errNoTerminal = errors.New("encrypted, and there is no terminal to ask for its passphrase on")

// A key is a private key file. Its passphrase is asked for once, when a host
// has said that it takes the key, and serves all hosts from then on.
type key struct {
	path   string
	public xssh.PublicKey // nil where only the opened key can tell

	mu     sync.Mutex
	pem    []byte // the encrypted file, until it is opened
	signer xssh.Signer
	err    error // it could not be opened
}

// Format prints the file's name only: a key is never shown.
func (k *key) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "key %s", k.path) }

// A keyring holds the private keys that were read, by file.
type keyring struct {
	mu   sync.Mutex
	keys map[string]*key
	ask  sync.Mutex // one question at a time
}

// Format prints nothing of what it holds.
func (r *keyring) Format(s fmt.State, _ rune) { fmt.Fprint(s, "keyring") }

// key reads a file, once. Where the file does not exist the error is
// fs.ErrNotExist; that is not remembered.
func (r *keyring) key(path string) (*key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[path]; k != nil {
		return k, nil
	}
	k, err := readKey(path)
	if err != nil {
		return nil, err
	}
	if r.keys == nil {
		r.keys = map[string]*key{}
	}
	r.keys[path] = k
	return k, nil
}

func readKey(path string) (*key, error) {
	f, err := safefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if errors.As(err, new(*safefile.KindError)) {
		return nil, errors.New("it is not a file")
	}
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	public, _, _, _, pubErr := xssh.ParseAuthorizedKey(data)
	if pubErr == nil { // a public key, whose private half an agent may have
		return &key{path: path, public: public, err: errors.New("it is a public key, and no agent has its private one")}, nil
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() {
		return nil, fmt.Errorf("its mode %04o lets others read it (chmod 600)", mode)
	}
	signer, err := xssh.ParsePrivateKey(data)
	if err == nil {
		return &key{path: path, public: signer.PublicKey(), signer: signer}, nil
	}
	var missing *xssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		return nil, errors.New("it is no private key that gangrun can use; an agent may")
	}
	k := &key{path: path, pem: data, public: missing.PublicKey}
	if k.public == nil {
		k.public, _ = readPublic(path + ".pub")
	}
	return k, nil
}

// readPublic reads a public key or a certificate.
func readPublic(path string) (xssh.PublicKey, error) {
	data, err := readSetting(path)
	if err != nil {
		return nil, err
	}
	public, _, _, _, err := xssh.ParseAuthorizedKey(data)
	return public, err
}

// open returns what signs with the key, and asks for the passphrase where it
// must. A key that could not be opened is not asked for again.
func (r *keyring) open(k *key, ask func(string) (string, error)) (xssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.signer != nil || k.err != nil {
		return k.signer, k.err
	}
	if ask == nil {
		return nil, errNoTerminal
	}
	r.ask.Lock()
	defer r.ask.Unlock()
	prompt := fmt.Sprintf("passphrase for key %q: ", k.path)
	for range maxAsks {
		secret, err := ask(prompt)
		if err != nil {
			k.err = errors.New("no passphrase was given")
			break
		}
		raw := []byte(secret)
		k.signer, err = xssh.ParsePrivateKeyWithPassphrase(k.pem, raw)
		clear(raw)
		if err == nil {
			k.pem = nil
			return k.signer, nil
		}
		prompt = fmt.Sprintf("that is not it; passphrase for key %q: ", k.path)
	}
	k.pem = nil
	if k.err == nil {
		k.err = errors.New("its passphrase was not given right")
	}
	return nil, k.err
}

// needsPassphrase says whether using the key would ask.
func (k *key) needsPassphrase() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.signer == nil && k.err == nil
}

// useless is why the key cannot be used, as far as that is known.
func (k *key) useless() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// A lazySigner opens its key when a host wants the signature, not before.
type lazySigner struct {
	public xssh.PublicKey
	open   func() (xssh.Signer, error)
}

// Format prints nothing of the key.
func (s *lazySigner) Format(f fmt.State, _ rune) { fmt.Fprint(f, "signer") }

// PublicKey is the key's public half.
func (s *lazySigner) PublicKey() xssh.PublicKey { return s.public }

// Sign signs by the key's own algorithm.
func (s *lazySigner) Sign(rand io.Reader, data []byte) (*xssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}

// Algorithms are those by which the key can sign.
func (s *lazySigner) Algorithms() []string {
	if s.public.Type() == xssh.KeyAlgoRSA {
		return []string{xssh.KeyAlgoRSASHA512, xssh.KeyAlgoRSASHA256}
	}
	return []string{s.public.Type()}
}

// SignWithAlgorithm opens the key and signs.
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
