package testhosts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed init.sh
var initScript string

// A program joins a host's cgroup, which may be "", after nsenter has entered the host.
// nsenter itself must not freeze with the host, since the kernel ends a PID namespace only
// after outside parents have waited for their children in it. If Go put the program into the
// cgroup when it forks, all other forks would wait while the cgroup is frozen.
//
// It joins the host's cgroups of version 1, which are never frozen, before that: $1 lists them.
const (
	open = `for c in $1; do echo 0 >"$c/cgroup.procs" || exit; done; shift; [ -z "$0" ] || exec 9>"$0/cgroup.procs"; exec "$@"`
	join = `if [ -n "$0" ]; then echo 0 >&9; exec 9>&-; fi; exec "$@"`
)

// entering returns a command that nsenter runs, with the flags, in the namespaces of a
// process. The command joins the host's cgroup first.
func (h *Host) entering(ctx context.Context, pid int, flags []string, argv ...string) *exec.Cmd {
	cgroup := h.bed.cgroupOf(h.name)
	args := append([]string{"-c", open, cgroup, strings.Join(h.v1(), " "), "nsenter", "-t", strconv.Itoa(pid)}, flags...)
	args = append(args, "--", "sh", "-c", join, cgroup)
	cmd := exec.CommandContext(ctx, "sh", append(args, argv...)...)
	cmd.Env = []string{ // at least the variables that sshd would set
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
	}
	cmd.Dir = "/"
	return cmd
}

// Host is one simulated host. Its methods are safe for concurrent use.
type Host struct {
	bed    *Bed
	number int
	name   string

	mu   sync.Mutex
	init int           // PID of the host's first process, as this process sees it
	down chan struct{} // closed when no process of the host runs; nil before it is first booted
	line line

	frozen bool
}

func newHost(b *Bed, number int) *Host {
	return &Host{bed: b, number: number, name: "h" + strconv.Itoa(number)}
}

// Name returns h1, h2 and so on: the name by which SSH reaches the host.
func (h *Host) Name() string { return h.name }

// Addr returns the host's address on the first network.
func (h *Host) Addr() netip.Addr { return address(0, h.number) }

// SecondAddr returns the host's address on the second network, if there is one.
func (h *Host) SecondAddr() netip.Addr { return address(1, h.number) }

// Disk returns the path by which this process reaches the host's own disk. On the host, the
// disk is /srv.
func (h *Host) Disk() string { return h.bed.path(h.name, "srv") }

// Init returns the PID of the host's first process, as this process sees it; 0 if the host is
// off.
func (h *Host) Init() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up() {
		return 0
	}
	return h.init
}

// up reports whether the host is on. The caller holds h.mu.
func (h *Host) up() bool {
	select {
	case <-h.down:
		return false
	default:
		return h.down != nil
	}
}

// on returns an error if the host is off. The caller holds h.mu.
func (h *Host) on() error {
	if !h.up() {
		return fmt.Errorf("host %s is off: boot it first", h.name)
	}
	return nil
}

// Boot starts a host that is off. It returns when SSH can reach the host. If the host's line is
// cut, Boot returns when the host is up.
func (h *Host) Boot() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up() {
		return fmt.Errorf("host %s is on", h.name)
	}
	if err := h.boot(); err != nil {
		return fmt.Errorf("booting %s: %w", h.name, err)
	}
	return nil
}

func (h *Host) boot() error {
	b := h.bed
	if h.down != nil {
		err := errors.Join(b.disconnect(h.number), removeBelow(b.cgroupOf(h.name)))
		for _, cgroup := range h.v1() {
			err = errors.Join(err, removeBelow(cgroup))
		}
		if err != nil {
			return err
		}
	}
	home, docker0 := "own", ""
	if b.settings.sharedHome {
		home = "shared"
	}
	if b.settings.docker0 {
		docker0 = "172.17.0.1/16"
	}
	cmd := h.entering(context.Background(), b.fabric, []string{"-n", "-p"},
		"unshare", "--net", "--mount", "--uts", "--ipc", "--cgroup", "--pid", "--fork", "--kill-child", "--",
		"bash", b.path("init.sh"), h.name, b.dir, b.sshd, b.cgroup2, home, docker0, b.containerd)
	up, err := start(cmd, b.path(h.name, "init.log"))
	if err != nil {
		return err
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		_ = cmd.Wait() // the host is down, whether it was killed or ended by itself
	}()
	h.down, h.frozen = down, false
	if err := up(); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	if h.init, err = onlyChild(cmd.Process.Pid, 2); err != nil { // child of unshare, which is the child of nsenter
		return err
	}
	if err := b.connect(h.number, h.init, !h.line.cut); err != nil {
		return err
	}
	return h.draw()
}

// Command returns a command that runs as root on the host, as in an SSH session. The network is
// not used for that. The command is killed when ctx ends or the host ends.
func (h *Host) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return nil, err
	}
	if h.frozen {
		return nil, fmt.Errorf("host %s is frozen: thaw it first", h.name)
	}
	cmd := h.entering(ctx, h.init, []string{"-m", "-u", "-i", "-n", "-C", "-p", "--wdns=/root"},
		append([]string{"setpriv", "--pdeathsig", "KILL", "--"}, argv...)...)
	cmd.WaitDelay = limit // a child may keep the pipes open
	return cmd, nil
}

// Exec runs a command on the host and returns its stdout and stderr. An error has both in its
// text, too.
func (h *Host) Exec(ctx context.Context, argv ...string) (string, error) {
	cmd, err := h.Command(ctx, argv...)
	if err != nil {
		return "", err
	}
	out, err := output(cmd)
	if err != nil {
		err = fmt.Errorf("on %s: %s: %w\n%s", h.name, strings.Join(argv, " "), errors.Unwrap(err), strings.TrimSpace(out))
	}
	return out, err
}

// Kill ends all processes of the host. The kernel then closes the host's connections, so that
// the peers notice it.
func (h *Host) Kill() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	return h.kill()
}

// Poweroff simulates a loss of power: the host ends without another packet to its peers.
func (h *Host) Poweroff() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	if err := h.bed.ports(h.number, "nomaster"); err != nil {
		return err
	}
	return h.kill()
}

// kill kills the host's first process; the kernel then kills all others.
func (h *Host) kill() error {
	waiting, err := h.waiting()
	if err != nil {
		return err
	}
	if err := syscall.Kill(h.init, syscall.SIGKILL); err != nil {
		return err
	}
	if cgroup := h.bed.cgroupOf(h.name); cgroup != "" { // a frozen host must be able to boot again
		err = os.WriteFile(filepath.Join(cgroup, "cgroup.freeze"), []byte("0"), 0o644)
	} else {
		err = resume(waiting)
	}
	if err != nil {
		return err
	}
	return h.awaitDown()
}

// awaitDown waits for the end of a host that was killed. The caller holds h.mu.
func (h *Host) awaitDown() error {
	select {
	case <-h.down:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("host %s still runs %v after it was killed", h.name, limit)
	}
}

// ended waits for the end of a host whose bed has ended.
func (h *Host) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down == nil {
		return nil
	}
	return h.awaitDown()
}

// StopSSH kills the host's sshd and all its sessions, including sessions that are being opened.
// It returns when all of them have ended. The port is then closed. Processes that the sessions
// started continue.
func (h *Host) StopSSH() error {
	return eventually(func() (bool, error) {
		processes, err := h.Processes("")
		gone := true
		for _, p := range processes {
			if strings.HasPrefix(p.Name, "sshd") { // newer versions have sshd-session
				gone = false
				err = errors.Join(err, signal(p.PID, syscall.SIGKILL))
			}
		}
		return gone, err
	})
}

// StartSSH starts sshd again.
func (h *Host) StartSSH() error {
	_, err := h.Exec(context.Background(), "bash", "-c", `rm -f /run/sshd.pid; "$0" -E /var/log/sshd.log || exit
		until [[ -s /run/sshd.pid ]]; do sleep 0.01; done`, h.bed.sshd)
	return err
}
