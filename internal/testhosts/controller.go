package testhosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Passphrase is the passphrase of the controller's key id_encrypted.
const Passphrase = "correct horse"

// Controller is the machine from which gangrun is started. It shares the files and processes of
// this machine. It has a network namespace of its own, in which "ssh h1" works, and a home of its
// own with the SSH keys:
//
//	id_ed25519    for the accounts of root; ~/.ssh/config names it
//	id_encrypted  for the accounts of root; encrypted with Passphrase
//	id_certified  for the accounts of root, but only with id_certified-cert.pub
//	id_alice      for the accounts of alice
type Controller struct {
	bed *Bed

	mu    sync.Mutex
	trust map[*Host]Trust
}

// Trust says which key of a host is in the controller's known_hosts.
type Trust int

// The right key, a wrong one, or none.
const (
	RightKey Trust = iota
	WrongKey
	NoKey
)

// Home returns the controller's home directory.
func (c *Controller) Home() string { return c.bed.path("ctl/home") }

// Key returns the path of the controller's private key with a given file name.
func (c *Controller) Key(name string) string { return c.bed.path("ctl/home/.ssh", name) }

// KnownHosts returns the path of the controller's known_hosts.
func (c *Controller) KnownHosts() string { return c.bed.path("ctl/home/.ssh/known_hosts") }

// SSHConfig returns the path of the controller's ssh_config(5).
func (c *Controller) SSHConfig() string { return c.bed.path("ctl/home/.ssh/config") }

// Command returns a command to run on the controller, in the directory cmd.Dir, with this process's environment. But
// HOME is the controller's home, and variables that point into the home or the session of the caller (GANGRUN_HOME,
// XDG_*, SSH_AUTH_SOCK) are removed or, like XDG_RUNTIME_DIR, set anew. cmd.Process.Pid is the PID of the command
// itself, so signals reach it. Processes that it leaves behind end with the bed.
func (c *Controller) Command(ctx context.Context, argv ...string) *exec.Cmd {
	// The working directory is lost when nsenter enters a mount namespace.
	const script = `[ -z "$0" ] || echo 0 >"$0/cgroup.procs" || exit; pid=$1; shift; exec nsenter -t "$pid" -n -m -u --wdns="$PWD" -- "$@"`
	args := append([]string{"-c", script, c.bed.cgroupOf("ctl"), strconv.Itoa(c.bed.keeper.Process.Pid)}, argv...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "HOME" || name == "PWD" || name == "GANGRUN_HOME" || name == "SSH_AUTH_SOCK" || strings.HasPrefix(name, "XDG_")
	}), "HOME="+c.Home(), "XDG_RUNTIME_DIR="+c.bed.path("ctl/run"))
	return cmd
}

// Exec runs a command on the controller and returns its stdout and stderr. An error has both in
// its text, too.
func (c *Controller) Exec(ctx context.Context, argv ...string) (string, error) {
	cmd := c.Command(ctx, argv...)
	cmd.WaitDelay = limit // a child may keep the pipes open
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("on the controller: %s: %w\n%s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Processes returns the processes started on the controller that have the marker in their
// environment. If marker is "", it returns all of them.
func (c *Controller) Processes(marker string) ([]Process, error) {
	found, err := processes(c.bed.keeper.Process.Pid, "net", marker)
	return slices.DeleteFunc(found, func(p Process) bool {
		return p.PID == c.bed.keeper.Process.Pid || p.ppid == c.bed.keeper.Process.Pid
	}), err
}

// Know sets which key of a host is in the controller's known_hosts.
func (c *Controller) Know(h *Host, what Trust) error {
	c.mu.Lock()
	if c.trust == nil {
		c.trust = make(map[*Host]Trust)
	}
	c.trust[h] = what
	c.mu.Unlock()
	return c.writeKnownHosts()
}

func (c *Controller) writeKnownHosts() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines strings.Builder
	for _, h := range c.bed.hosts {
		name := c.bed.path(h.name, "ssh/ssh_host_ed25519_key.pub")
		switch c.trust[h] {
		case NoKey:
			continue
		case WrongKey:
			name = c.bed.path("ctl/ca.pub") // any key that is not the host's
		}
		key, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fields := strings.Fields(string(key))
		fmt.Fprintf(&lines, "%s,%v,%v %s %s\n", h.name, h.Addr(), h.SecondAddr(), fields[0], fields[1])
	}
	return os.WriteFile(c.KnownHosts(), []byte(lines.String()), 0o600)
}
