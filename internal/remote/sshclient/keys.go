package sshclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	xssh "golang.org/x/crypto/ssh"

	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/safefile"
)

// maxAsks is how often the Dialer asks a person for the passphrase of a key before it skips the key.
const maxAsks = 3

// key is a private key file. The Dialer asks a person for its passphrase when the first host accepts the key. Then the
// decrypted key serves all hosts.
type key struct {
	path   string
	public xssh.PublicKey // nil if the public key is known only after the private key is opened

	mu     sync.Mutex
	pem    []byte // the encrypted file, until the key is opened
	signer xssh.Signer
	err    error // why the key cannot be opened
}

// Format prints only the name of the file, and never the key.
func (k *key) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "key %s", k.path) }

// keyring holds the private keys that have been read, by file.
type keyring struct {
	mu   sync.Mutex
	keys map[string]*key
	ask  sync.Mutex // held while a person is asked
}

// Format does not print the keys.
func (r *keyring) Format(s fmt.State, _ rune) { fmt.Fprint(s, "keyring") }

// key returns the key in a file. It reads the file only once. If the file does not exist, key returns fs.ErrNotExist,
// and looks for the file again the next time.
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

// readKey reads a private key file.
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
	if pubErr == nil { // the file is a public key; ssh-agent may have the private key
		return &key{path: path, public: public, err: errors.New("it is a public key, and ssh-agent does not have the private one")}, nil
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() {
		return nil, &modeError{mode}
	}
	signer, err := xssh.ParsePrivateKey(data)
	if err == nil {
		return &key{path: path, public: signer.PublicKey(), signer: signer}, nil
	}
	var missing *xssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		return nil, errors.New("gangrun cannot use this private key; ssh-agent may be able to")
	}
	k := &key{path: path, pem: data, public: missing.PublicKey}
	if k.public == nil {
		k.public, _ = readPublic(path + ".pub")
	}
	return k, nil
}

// modeError is the error if other users can read a private key file.
type modeError struct{ mode fs.FileMode }

func (e *modeError) Error() string {
	return fmt.Sprintf("its mode %04o lets others read it (chmod 600)", e.mode)
}

// readPublic reads a public key or a certificate.
func readPublic(path string) (xssh.PublicKey, error) {
	data, err := sshconfig.ReadFile(path)
	if err != nil {
		return nil, err
	}
	public, _, _, _, err := xssh.ParseAuthorizedKey(data)
	return public, err
}

// open returns the signer of a key, and asks for the passphrase if the key is encrypted. If a key could not be opened,
// open does not try it again.
func (r *keyring) open(k *key, ask func(string) (string, error)) (xssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.signer != nil || k.err != nil {
		return k.signer, k.err
	}
	if ask == nil {
		return nil, errEncrypted
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
		prompt = fmt.Sprintf("wrong passphrase; passphrase for key %q: ", k.path)
	}
	k.pem = nil
	if k.err == nil {
		k.err = errors.New("the passphrase was wrong each time")
	}
	return nil, k.err
}

// needsPassphrase reports whether a person must be asked before the key can be used.
func (k *key) needsPassphrase() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.signer == nil && k.err == nil
}

// useless returns why the key cannot be used. It returns nil if the key may be usable.
func (k *key) useless() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
