package ssh

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// self is the test binary as a Program to install on hosts.
var self = sync.OnceValue(func() Program {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(data)
	return Program{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data)), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
})

// small is a small Program, which is sent quickly. It is larger than 1 MiB, the size of some directories in these
// tests.
var small = sync.OnceValue(func() Program {
	return programOf([]byte("#!/bin/sh\ncase $1 in self-check) exit 0;; esac\nshift\necho \"$@\"\nexit 0\n" + strings.Repeat("# and nothing more\n", 1<<16+1<<14)))
})

func programOf(data []byte) Program {
	sum := sha256.Sum256(data)
	return Program{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// private returns a script that gives a host its own /tmp, /dev/shm and home. The files of the test stay where they
// are. The script home runs with $HOME set to an existing directory.
func private(s *sshtest.Site, home string) string {
	return fmt.Sprintf(`mount --bind %[1]s /mnt; mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm;
mkdir -p %[1]s; mount --bind /mnt %[1]s; HOME=%[1]s/home; mkdir -p $HOME; %s`, s.Dir, home)
}

// hostIn returns a connection to a host with its own mounts and home.
func hostIn(t *testing.T, home string, more ...string) (*sshtest.Site, *Conn) {
	t.Helper()
	s := sshtest.New(t)
	s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
	env := "SetEnv HOME=" + s.Path("home")
	if len(more) > 0 {
		env += " " + more[0]
		more = more[1:]
	}
	s.StartIn("n1", private(s, home), append([]string{env}, more...)...).Known().Named()
	return s, dial(t, client(s), "n1")
}

func installed(t *testing.T, c *Conn, p Program) (path, note string) {
	t.Helper()
	path, note, err := install(t.Context(), c, p)
	if err != nil {
		t.Fatal(err)
	}
	return path, note
}

// started runs an installed program and returns its output.
func started(t *testing.T, c *Conn, p Program, args ...string) string {
	t.Helper()
	p.Open, p.packed = func() (io.ReadCloser, error) { t.Error("it is sent"); return nil, errNotHere }, nil
	s, _, note, err := installAndRun(t.Context(), c, p, args...)
	if err != nil || note != "" {
		t.Fatalf("%v, note %q", err, note)
	}
	defer s.Close()
	said, err := io.ReadAll(s.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

var errNotHere = errors.New("it is not here")

// missing reports whether a host asks for a program. The program is not sent.
func missing(t *testing.T, c *Conn, p Program) bool {
	t.Helper()
	p.Open, p.packed = func() (io.ReadCloser, error) { return nil, errNotHere }, nil
	_, _, _, err := installAndRun(t.Context(), c, p, "say")
	if err != nil && !errors.Is(err, errNotHere) {
		t.Fatal(err)
	}
	return err != nil
}
