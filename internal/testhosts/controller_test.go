package testhosts

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestKeysAndUsers(t *testing.T) {
	b := Up(t, 1)
	c := b.Controller()
	asked := filepath.Join(t.TempDir(), "askpass")
	must(t, os.WriteFile(asked, []byte("#!/bin/sh\necho '"+Passphrase+"'\n"), 0o700))
	refused := "Permission denied (publickey)"
	for _, test := range []struct {
		user, key, says string
		askpass         string
	}{
		{user: "root", key: "id_ed25519", says: "root"},
		{user: "root", key: "id_certified", says: "root"},
		{user: "root", key: "id_encrypted", says: "root", askpass: asked},
		{user: "root", key: "id_encrypted", says: refused, askpass: "false"},
		{user: "root", key: "id_alice", says: refused},
		{user: "alice", key: "id_alice", says: "alice"},
		{user: "alice", key: "id_certified", says: refused},
		{user: "bob", key: "id_ed25519", says: refused},
		{user: "nobody-here", key: "id_ed25519", says: refused},
	} {
		cmd := c.Command(t.Context(), "ssh", "-F", "none", "-o", "IdentitiesOnly=yes", "-o", "PasswordAuthentication=no",
			"-o", "UserKnownHostsFile="+c.KnownHosts(), "-o", "StrictHostKeyChecking=yes", "-i", c.Key(test.key), test.user+"@h1", "id -un")
		cmd.Env = append(cmd.Env, "SSH_ASKPASS="+test.askpass, "SSH_ASKPASS_REQUIRE=force")
		out, err := cmd.CombinedOutput()
		if got := string(out); !strings.Contains(got, test.says) || (err == nil) != (test.says == test.user) {
			t.Errorf("%s with %s: %v, %q; want %q", test.user, test.key, err, got, test.says)
		}
	}
	if _, err := b.Host(1).Exec(t.Context(), "setpriv", "--reuid=7002", "--regid=7002", "--clear-groups", "ls", "/root"); err == nil {
		t.Error("bob reads root's home")
	}
}

func TestCertificateIsTheOnlyWayForItsKey(t *testing.T) {
	b := Up(t, 1)
	c := b.Controller()
	must(t, os.Remove(c.Key("id_certified-cert.pub")))
	out, err := c.Exec(t.Context(), "ssh", "-o", "BatchMode=yes", "-F", "none", "-o", "IdentitiesOnly=yes", "-i", c.Key("id_certified"), "-o", "UserKnownHostsFile="+c.KnownHosts(), "h1", "true")
	if err == nil || !strings.Contains(out, "Permission denied (publickey)") {
		t.Errorf("without its certificate: %v, %s", err, out)
	}
}

func TestKnow(t *testing.T) {
	b := Up(t, 2)
	c := b.Controller()
	for _, test := range []struct {
		what Trust
		says string
	}{
		{WrongKey, "REMOTE HOST IDENTIFICATION HAS CHANGED"},
		{NoKey, "No ED25519 host key is known for h1"},
	} {
		must(t, c.Know(b.Host(1), test.what))
		if out, err := c.Exec(t.Context(), "ssh", "h1", "true"); err == nil || !strings.Contains(out, test.says) {
			t.Errorf("ssh says %v, %q; want %q", err, out, test.says)
		}
		ssh(t, b, b.Host(2), "true")
	}
	must(t, c.Know(b.Host(1), RightKey))
	ssh(t, b, b.Host(1), "true")
}

func TestControllerCommand(t *testing.T) {
	t.Setenv("GANGRUN_HOME", "/elsewhere")
	t.Setenv("XDG_STATE_HOME", "/elsewhere")
	b := Up(t, 1)
	c := b.Controller()
	cmd := c.Command(t.Context(), "sh", "-c", `pwd; hostname; echo "$HOME"; env | grep -c /elsewhere; [ "$(stat -c %a "$XDG_RUNTIME_DIR")" = 700 ] && ls ~/.ssh/config`)
	cmd.Dir = t.TempDir()
	out, err := output(cmd)
	must(t, err)
	if want := cmd.Dir + "\nctl\n" + c.Home() + "\n0\n" + c.SSHConfig() + "\n"; out != want {
		t.Errorf("it says %q, want %q", out, want)
	}

	cmd = c.Command(t.Context(), "sleep", "1000")
	cmd.Env = append(cmd.Env, "BED_MARK=1")
	must(t, cmd.Start())
	var found []Process
	must(t, eventually(func() (_ bool, err error) {
		found, err = c.Processes("BED_MARK=1")
		return len(found) == 1 && found[0].Name == "sleep", err
	}))
	if found[0].PID != cmd.Process.Pid {
		t.Errorf("its PID is %d, not %d", found[0].PID, cmd.Process.Pid)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended as %v", cmd.ProcessState)
	}
	if found, err := c.Processes(""); err != nil || len(found) > 0 {
		t.Errorf("there are still %v, %v", found, err)
	}
}
