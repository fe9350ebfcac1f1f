package testhosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// users are the users that hosts have and this machine has not: lines of /etc/passwd,
// /etc/group and /etc/shadow. No password matches a star.
const (
	users   = "alice:*:7001:7001::/home/alice:/bin/bash\nbob:*:7002:7002::/home/bob:/bin/bash\n"
	groups  = "alice:*:7001:\nbob:*:7002:\n"
	shadows = "root:*:19000::::::\nalice:*:19000::::::\nbob:*:19000::::::\n"
)

const sshdConfig = `HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /etc/ssh/authorized_keys/%u
TrustedUserCAKeys /etc/ssh/ca.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
Subsystem sftp internal-sftp
LogLevel VERBOSE
`

// writeFiles writes the files of the bed's directory.
func (b *Bed) writeFiles() error {
	for _, dir := range []string{"etc", "home", "shared", "ctl/home/.ssh", "ctl/run"} {
		if err := os.MkdirAll(b.path(dir), 0o700); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(b.Shared(), 0o1777|os.ModeSticky), b.makeKeys()); err != nil {
		return err
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost\n%v ctl\n", address(0, control))
	for _, h := range b.hosts {
		hosts += fmt.Sprintf("%v %s\n", h.Addr(), h.Name())
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		return err
	}
	return errors.Join(
		b.write("keep.sh", 0o644, keepScript),
		b.write("init.sh", 0o644, initScript),
		b.write("containerd.sh", 0o644, containerdScript),
		b.write("etc/hosts", 0o644, hosts),
		b.write("etc/passwd", 0o644, withLines(passwd, users)),
		b.write("etc/group", 0o644, withLines(group, groups)),
		b.write("etc/shadow", 0o600, shadows),
		b.each(b.writeHost),
		b.write("ctl/home/.ssh/config", 0o600, b.sshConfig()),
		b.control.writeKnownHosts(),
	)
}

func (b *Bed) writeHost(h *Host) error {
	keys := filepath.Join(h.name, "ssh", "authorized_keys")
	for _, dir := range []string{filepath.Join(h.name, "srv"), filepath.Join(h.name, "log"), keys} {
		if err := os.MkdirAll(b.path(dir), 0o755); err != nil {
			return err
		}
	}
	client := b.path("ctl/home/.ssh")
	plain, err := os.ReadFile(filepath.Join(client, "id_ed25519.pub"))
	if err != nil {
		return err
	}
	encrypted, err := os.ReadFile(filepath.Join(client, "id_encrypted.pub"))
	if err != nil {
		return err
	}
	alice, err := os.ReadFile(filepath.Join(client, "id_alice.pub"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(b.path("ctl/ca.pub"))
	if err != nil {
		return err
	}
	return errors.Join(
		b.write(filepath.Join(keys, "root"), 0o644, string(plain)+string(encrypted)),
		b.write(filepath.Join(keys, "alice"), 0o644, string(alice)),
		b.write(filepath.Join(h.name, "ssh", "ca.pub"), 0o644, string(ca)),
		b.write(filepath.Join(h.name, "ssh", "sshd_config"), 0o644, sshdConfig),
		b.write(filepath.Join(h.name, "hostname"), 0o644, h.name+"\n"),
		b.write(filepath.Join(h.name, "machine-id"), 0o444, fmt.Sprintf("%032x\n", h.number)),
		keygen("-N", "", "-C", h.name, "-f", b.path(h.name, "ssh", "ssh_host_ed25519_key")),
	)
}

// makeKeys makes the controller's keys, and the authority that signs one of them.
func (b *Bed) makeKeys() error {
	dir := b.path("ctl/home/.ssh")
	ca, certified := b.path("ctl/ca"), filepath.Join(dir, "id_certified")
	err := errors.Join(
		keygen("-N", "", "-C", "ca", "-f", ca),
		keygen("-N", "", "-C", "controller", "-f", filepath.Join(dir, "id_ed25519")),
		keygen("-N", Passphrase, "-a", "1", "-C", "encrypted", "-f", filepath.Join(dir, "id_encrypted")),
		keygen("-N", "", "-C", "certified", "-f", certified),
		keygen("-N", "", "-C", "alice", "-f", filepath.Join(dir, "id_alice")),
	)
	if err != nil {
		return err
	}
	return run("", "ssh-keygen", "-q", "-s", ca, "-I", "certified", "-n", "root", certified+".pub")
}

func keygen(args ...string) error {
	return run("", append([]string{"ssh-keygen", "-q", "-t", "ed25519"}, args...)...)
}

func (b *Bed) sshConfig() string {
	ssh := b.path("ctl/home/.ssh")
	return fmt.Sprintf(`Host h* 10.77.* 10.78.*
  User root
  IdentityFile %s/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile %[1]s/known_hosts
  StrictHostKeyChecking yes
`, ssh)
}

// path returns the path of a file in the bed's directory.
func (b *Bed) path(names ...string) string {
	return filepath.Join(append([]string{b.dir}, names...)...)
}

func (b *Bed) write(name string, mode os.FileMode, text string) error {
	return os.WriteFile(b.path(name), []byte(text), mode)
}

// withLines returns a file's text with lines appended. They replace lines that begin with the
// same name.
func withLines(text []byte, lines string) string {
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, ":")
		if !strings.HasPrefix(lines, name+":") && !strings.Contains(lines, "\n"+name+":") {
			kept.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return kept.String() + lines
}
