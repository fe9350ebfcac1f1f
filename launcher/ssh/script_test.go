package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// TestSessionStays checks that the program, and so every rank, has the umask and the locale of the session. The script
// needs others for itself.
func TestSessionStays(t *testing.T) {
	const program = "#!/bin/sh\necho umask $(umask) LC_ALL ${LC_ALL-none} $1\n"
	sum := sha256.Sum256([]byte(program))
	hash, cache := hex.EncodeToString(sum[:]), t.TempDir()
	dir := filepath.Join(cache, "gangrun", hash)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gangrun"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ before, want string }{
		{"umask 022; unset LC_ALL; ", "umask 0022 LC_ALL none arg"},
		{"umask 002; LC_ALL=POSIX; export LC_ALL; ", "umask 0002 LC_ALL POSIX arg"},
	} {
		line := script(installScript, hash, "gangrun", strconv.Itoa(len(program)), "0123456789abcdef", "0", oneLine(takeScript), "arg")
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", c.before+line)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), c.want) {
			t.Errorf("%v, %q, want %q", err, out, c.want)
		}
	}
}

func TestCommandQuotes(t *testing.T) {
	for _, args := range [][]string{{"a"}, {"", "$x `y` \"z\" \\"}, {"it's"}, {"a\nb"}} {
		s := sshtest.New(t)
		script := s.Write("p", "#!/bin/sh\nfor a in \"$@\"; do printf '[%s]' \"$a\"; done\n")
		if err := os.Chmod(script, 0o700); err != nil {
			t.Fatal(err)
		}
		if got, want := s.Tool("/bin/sh", "-c", runLine(script, args...)), "["+strings.Join(args, "][")+"]"; got != want {
			t.Errorf("%q arrive as %q", args, got)
		}
	}
}
