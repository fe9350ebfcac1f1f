package ssh

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/remote/bridge"
	"github.com/gangrun/gangrun/internal/remote/sshtest"
)

// start starts an agent on n1 and ends it. hint is the hint of the error.
func start(t *testing.T, s *sshtest.Site) (hint string, err error) {
	t.Helper()
	a := &Agents{
		Dialer: client(s), Program: gangrun(t),
		OrphanGrace: 20 * time.Second, Note: func(host, text string) { t.Errorf("note on %s: %s", host, text) },
	}
	link, err := a.Dial(t.Context(), "n1")
	if err == nil {
		return "", link.End(t.Context())
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		hint = hinted.Hint()
	}
	return hint, err
}

// TestLoginShells: if a login shell does not run the command, the error has what it printed, how it
// ended and where to look. A few lines of other output do no harm.
func TestLoginShells(t *testing.T) {
	for _, test := range []struct {
		name, sshd, bashrc string
		text, hint         string // "" if there must be no error
	}{
		{name: "quiet"},
		{name: "some lines", bashrc: "seq 100; seq 100 >&2"},
		{name: "no end of line", bashrc: "printf hello"},
		{
			name: "forced command", sshd: "ForceCommand /bin/echo go away",
			text: `the shell ended with code 0 and printed "go away"`, hint: "see ForceCommand in the sshd_config of n1, and the user's login shell",
		},
		{
			name: "nologin", bashrc: "echo This account is currently not available.; exit 1",
			text: `ended with code 1 and printed "This account is currently not available."`, hint: "n1 true",
		},
		{name: "exit", bashrc: "exit 3", text: "ended with code 3 and printed nothing", hint: ".bashrc"},
		{
			name: "both outputs", bashrc: "echo no; echo shell >&2; exit 4",
			text: `ended with code 4 and printed "no", and "shell" on its standard error`, hint: ".bashrc",
		},
		{name: "many words", bashrc: "seq 2000; exit 5", text: `\n55\n56\n5..."`, hint: ".bashrc"},
		{name: "3 MB", bashrc: `head -c 3000000 /dev/zero | tr "\0" x`, text: `printed more than 64 KiB before it, beginning with "xxx`, hint: "print nothing unless"},
		{name: "no end", bashrc: "yes", text: `printed more than 64 KiB before it, beginning with "y\ny\n`, hint: "print nothing unless"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sshtest.New(t)
			s.Authorize(s.NewKey(".ssh/id_ed25519", "ed25519", ""))
			s.Write("home/.bashrc", test.bashrc+"\n")
			s.Start("n1", "SetEnv HOME="+s.Path("home"), test.sshd).Known().Named()
			begun := time.Now()
			hint, err := start(t, s)
			if test.text == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), `host "n1"`) {
				t.Errorf("got %v, want %q", err, test.text)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q, want %q", hint, test.hint)
			}
			if took := time.Since(begun); took >= sshtest.Longest {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestPlacesTaken checks the error if files of other users are in the way of an agent's directory. It must say which
// user has to remove what.
func TestPlacesTaken(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("only root can make another user's directories")
	}
	s, _ := hostIn(t, `mount -t tmpfs vartmp /var/tmp; for d in /tmp /var/tmp /dev/shm; do mkdir $d/gangrun-0; chown 1 $d/gangrun-0; done`)
	hint, err := start(t, s)
	if err == nil || !strings.Contains(err.Error(), "the agent cannot be started: no directory for the agent's socket") {
		t.Fatal(err)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if want := filepath.Join(dir, "gangrun-0") + " (only user 1 or root can)"; !strings.Contains(hint, want) {
			t.Errorf("hint %q has no %q", hint, want)
		}
	}
	if !strings.HasPrefix(hint, "on n1: remove one of these") {
		t.Errorf("hint %q", hint)
	}
}

func TestParseAnswer(t *testing.T) {
	for line, want := range map[string]answer{
		"ready boot /a b\t\t\n":    {bridge.Ready, "boot", "/a b", "", ""},
		"failed boot /a\tx y\tz\n": {bridge.Failed, "boot", "/a", "x y", "z"},
		"gone boot /a\tx y\n":      {bridge.Gone, "boot", "/a", "x y", ""},
	} {
		if got, ok := parseAnswer(line); !ok || got != want {
			t.Errorf("%q: %+v, %t", line, got, ok)
		}
	}
	for _, line := range []string{"", "ready\n", "ready boot\n", "ready boot /a\n"} {
		if got, ok := parseAnswer(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
