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

// A program joins a host's cgroup, which may be "", after nsenter has taken it
// to the host: nsenter itself must not freeze with the host, since the kernel
// ends a PID namespace only when those outside have reaped what they put in it.
// Go could put a program into a cgroup while it forks, but holds all other forks
// up for as long as the cgroup is frozen.
const (
	open = `[ -z "$0" ] || exec 9>"$0/cgroup.procs"; exec "$@"`
	join = `if [ -n "$0" ]; then echo 0 >&9; exec 9>&-; fi; exec "$@"`
)

// entering returns a command that nsenter takes, with the flags, to where a
// process is, and which joins the host's cgroup there.
func (h *Host) entering(ctx context.Context, pid int, flags []string, argv ...string) *exec.Cmd {
	cgroup := h.bed.cgroupOf(h.name)
	args := append([]string{"-c", open, cgroup, "nsenter", "-t", strconv.Itoa(pid)}, flags...)
	args = append(args, "--", "sh", "-c", join, cgroup)
	cmd := exec.CommandContext(ctx, "sh", append(args, argv...)...)
	cmd.Env = []string{ // what sshd would set, at least
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
	}
	cmd.Dir = "/"
	return cmd
}

// Host is one simulated host. Its methods may be called at the same time.
type Host struct {
	bed    *Bed
	number int
	name   string

	mu   sync.Mutex
	init int           // PID of the host's first process, as this process sees it
	down chan struct{} // closed when nothing of the host runs; nil before it is first booted
	line line

	frozen bool
}

func newHost(b *Bed, number int) *Host {
	return &Host{bed: b, number: number, name: "h" + strconv.Itoa(number)}
}

// Name is h1, h2 and so on: the name by which SSH reaches the host.
func (h *Host) Name() string { return h.name }

// Addr is the host's address on the first network.
func (h *Host) Addr() netip.Addr { return address(0, h.number) }

// SecondAddr is the host's address on the second network, if there is one.
func (h *Host) SecondAddr() netip.Addr { return address(1, h.number) }

// Disk is where this process sees the host's own disk, the host's /srv.
func (h *Host) Disk() string { return h.bed.path(h.name, "srv") }

// Init is the PID of the host's first process as this process sees it; 0 when
// the host is off.
func (h *Host) Init() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.up() {
		return 0
	}
	return h.init
}

// up says whether the host is on. The caller holds h.mu.
func (h *Host) up() bool {
	select {
	case <-h.down:
		return false
	default:
		return h.down != nil
	}
}

// on is an error when the host is off. The caller holds h.mu.
func (h *Host) on() error {
	if !h.up() {
		return fmt.Errorf("host %s is off: boot it first", h.name)
	}
	return nil
}

// Boot starts a host that is off and returns when SSH can reach it, unless its
// line is cut: that stays as it was.
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
		if err := errors.Join(b.disconnect(h.number), removeBelow(b.cgroupOf(h.name))); err != nil {
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
		"bash", b.path("init.sh"), h.name, b.dir, b.sshd, b.cgroup2, home, docker0)
	up, err := start(cmd, b.path(h.name, "init.log"))
	if err != nil {
		return err
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		_ = cmd.Wait() // it was killed, or ended by itself: it is down
	}()
	h.down, h.frozen = down, false
	if err := up(); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	if h.init, err = onlyChild(cmd.Process.Pid, 2); err != nil { // of nsenter, and of unshare
		return err
	}
	if err := b.connect(h.number, h.init, !h.line.cut); err != nil {
		return err
	}
	return h.draw()
}

// Command makes a command that runs on the host as root, as an SSH session
// would, without the network. Ending ctx kills it. Only this process
// controls it. It dies with the host.
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
	cmd.WaitDelay = limit // a child that it leaves may hold the pipes open
	return cmd, nil
}

// Exec runs a command on the host and returns what it printed on stdout and
// stderr, which an error says too.
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

// Kill ends all of the host at once. The kernel closes its connections, as of
// processes that end: others learn of it.
func (h *Host) Kill() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.on(); err != nil {
		return err
	}
	return h.kill()
}

// Poweroff is a loss of power: all of the host ends, and nobody hears of it.
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

// kill kills the host's first process, and with it the kernel kills all others.
func (h *Host) kill() error {
	waiting, err := h.waiting()
	if err != nil {
		return err
	}
	if err := syscall.Kill(h.init, syscall.SIGKILL); err != nil {
		return err
	}
	if cgroup := h.bed.cgroupOf(h.name); cgroup != "" { // it is to be booted again
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

// StopSSH kills the host's sshd and all its sessions, those too that are just being
// opened, and returns when they are gone: others find the port closed. What the
// sessions started goes on.
func (h *Host) StopSSH() error {
	return eventually(func() (bool, error) {
		processes, err := h.Processes("")
		gone := true
		for _, p := range processes {
			if strings.HasPrefix(p.Name, "sshd") { // newer ones have sshd-session
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
