package sshclient

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// asker answers questions and counts them.
type asker struct {
	asked  atomic.Int32
	answer func(n int) (string, error)
}

func (a *asker) ask(prompt string) (string, error) { return a.answer(int(a.asked.Add(1))) }

const secret = "correct horse battery"

func TestEncryptedKey(t *testing.T) {
	for _, format := range [][]string{nil, {"-m", "PEM"}} {
		t.Run(strings.Join(format, ""), func(t *testing.T) {
			s := sshtest.New(t)
			s.Authorize(s.NewKey(".ssh/id_rsa", "rsa", secret, format...))
			d1, d2 := s.Start("n1").Known().Named(), s.Start("n2").Known().Named()
			d := dialer(s)
			_, err := d.Dial(t.Context(), "n1")
			var refused *AuthError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "no terminal") {
				t.Fatalf("without a terminal: %T: %v", err, err)
			}
			if hint := hints(t, err, "n1", d1.Port, s.User); !strings.Contains(hint, "ssh-add") {
				t.Errorf("hint %q", hint)
			}
			a := &asker{answer: func(n int) (string, error) {
				if n == 1 {
					return "wrong " + secret, nil
				}
				return secret, nil
			}}
			d = dialer(s)
			d.Ask = a.ask
			var all sync.WaitGroup
			for _, host := range []string{"n1", "n2", "n1", "n2"} {
				all.Go(func() {
					c, err := d.Dial(t.Context(), host)
					if err != nil {
						t.Error(err)
						return
					}
					c.Close()
				})
			}
			all.Wait()
			if n := a.asked.Load(); n != 2 {
				t.Errorf("asked %d times, want once and once more after a wrong answer", n)
			}
			_ = d2
		})
	}
}

func TestPassphraseNotGiven(t *testing.T) {
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", secret))
	s.Start("n1").Known().Named()
	for _, a := range []*asker{
		{answer: func(int) (string, error) { return "", errors.New("told: " + secret) }},
		{answer: func(int) (string, error) { return "not " + secret, nil }},
	} {
		d := dialer(s)
		d.Ask = a.ask
		for range 2 {
			_, err := d.Dial(t.Context(), "n1")
			var refused *AuthError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "passphrase") {
				t.Fatalf("%T: %v", err, err)
			}
			for _, text := range []string{err.Error(), refused.Hint(), fmt.Sprintf("%+v %#v", err, err), fmt.Sprintf("%+v %#v %v", d, d, &d.keys)} {
				if strings.Contains(text, secret) {
					t.Errorf("a secret is shown: %s", text)
				}
			}
		}
		if n := a.asked.Load(); n > maxAsks {
			t.Errorf("asked %d times", n)
		}
	}
}

// TestKeyIsNotAskedForInVain checks that there is no question for the passphrase of a key that the host does not
// accept.
func TestKeyIsNotAskedForInVain(t *testing.T) {
	s := sshtest.New(t)
	s.NewKey(".ssh/id_ecdsa", "ecdsa", secret)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	s.Start("n1").Known().Named()
	d := dialer(s)
	d.Ask = func(string) (string, error) { t.Error("asked"); return secret, nil }
	dial(t, d, "n1")
}

var _ xssh.Signer = (*lazySigner)(nil)

func TestReadKeyOfFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(fifo); err == nil || err.Error() != "it is not a file" { // and readKey does not wait
		t.Errorf("error %v", err)
	}
}
