// Package testhosts simulates hosts on one Linux machine, for tests and for people ("make
// hosts"). Each host is a set of namespaces (network, mount, PID, UTS, IPC, cgroup) with an
// sshd. All hosts are on one bridge. A test can cut them off, freeze, kill and boot them. The
// package needs root.
//
// Each boot gives a host a new /tmp, /var/tmp, /run, /dev/shm, /home and /root of its own. A
// host's own disk at /srv is kept after a power-off. All hosts share the directory Shared, at
// the same path. The rest of the file system is that of this machine. The users are root, alice
// and bob. The controller has a key for the account of alice, and none for that of bob. The
// hosts have no keys for each other.
package testhosts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/noskip"
)

// limit bounds each operation of a bed on the system: one that takes longer hangs.
const limit = time.Minute

// downLimit bounds the end of a bed: hosts may have unpacked large images.
const downLimit = 5 * time.Minute

// maxHosts bounds the hosts of a bed: a network has 254 addresses, and tests need some unused
// ones.
const maxHosts = 200

//go:embed keep.sh
var keepScript string

// Bed is a number of hosts and their controller. Its methods are safe for concurrent use.
type Bed struct {
	dir        string
	cgroup     string   // "" if the machine has none that can be frozen, or does not permit to make one
	cgroup2    string   // where the hierarchy of cgroup is mounted
	v1         []string // the bed's cgroups of version 1, if it has some: one in each hierarchy
	sshd       string   // the program
	containerd string   // the program, "" if none runs
	settings   settings
	lifeline   *os.File
	keeper     *exec.Cmd
	fabric     int // PID of the process that keeps the bridges
	hosts      []*Host
	control    *Controller
	close      func() error
}

type settings struct {
	networks   int
	docker0    bool
	sharedHome bool
	noCgroup   bool
	containerd bool
}

// Option changes what New makes.
type Option func(*settings)

// SecondNetwork gives each host and the controller an interface eth1 on a second bridge,
// 10.78.0.0/24. Methods such as Cut and Rate then change a host's line on both networks.
func SecondNetwork() Option { return func(s *settings) { s.networks = 2 } }

// Docker0 gives each host an interface docker0, as Docker does. It has the same address on all
// hosts, and no connection to other hosts.
func Docker0() Option { return func(s *settings) { s.docker0 = true } }

// SharedHome makes root's home one directory for all hosts, as with NFS. It is kept after a
// power-off.
func SharedHome() Option { return func(s *settings) { s.sharedHome = true } }

// Up is like New, for tests: the bed ends with the test. If the machine cannot simulate hosts,
// the test is skipped. If tests must not be skipped, it fails.
func Up(t testing.TB, n int, options ...Option) *Bed {
	t.Helper()
	Need(t)
	if _, err := containerdOf(settingsOf(options)); err != nil {
		noskip.Skip(t, "%v", err)
	}
	b, err := New(n, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Need skips the test if this user cannot simulate hosts on this machine. If tests must not be
// skipped, the test fails.
func Need(t testing.TB) {
	t.Helper()
	if err := able(os.Geteuid()); err != nil {
		noskip.Skip(t, "%v", err)
	}
}

// able returns an error that names what a user of this machine lacks to simulate hosts.
func able(uid int) error {
	if uid != 0 {
		return errors.New("only root can simulate hosts: run it as root")
	}
	for _, name := range []string{"bash", "unshare", "nsenter", "setpriv", "ip", "tc", "nft", "sshd", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("simulating hosts takes %q, which is not on PATH: run: make deps/hosts", name)
		}
	}
	return nil
}

// New starts the hosts h1 to hN, with the addresses 10.77.0.1 to 10.77.0.N, and the controller,
// 10.77.0.254. It returns when SSH can reach the hosts. Close stops them. They also stop when
// this process ends, in whatever way.
func New(n int, options ...Option) (*Bed, error) {
	if n < 1 || n > maxHosts {
		return nil, fmt.Errorf("there can be no bed of %d hosts: take 1 to %d", n, maxHosts)
	}
	if err := able(os.Geteuid()); err != nil {
		return nil, err
	}
	b := &Bed{settings: settingsOf(options)}
	var err error
	if b.containerd, err = containerdOf(b.settings); err != nil {
		return nil, err
	}
	b.close = sync.OnceValue(b.end)
	for i := range n {
		b.hosts = append(b.hosts, newHost(b, i+1))
	}
	b.control = &Controller{bed: b}
	if err := b.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("simulating hosts: %w", err), b.Close())
	}
	return b, nil
}

func settingsOf(options []Option) settings {
	s := settings{networks: 1}
	for _, option := range options {
		option(&s)
	}
	return s
}

func (b *Bed) start() error {
	var err error
	if b.sshd, err = exec.LookPath("sshd"); err != nil {
		return err
	}
	dir, lock, err := claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	b.dir = dir
	if err := errors.Join(b.makeCgroups(), b.writeFiles()); err != nil {
		return err
	}
	if err := b.keep(lock); err != nil {
		return err
	}
	if err := b.connect(control, b.keeper.Process.Pid, true); err != nil {
		return err
	}
	return b.each((*Host).Boot)
}

// each calls f for every host, all at the same time.
func (b *Bed) each(f func(*Host) error) error {
	errs := make([]error, len(b.hosts))
	var group sync.WaitGroup
	for i, h := range b.hosts {
		group.Go(func() { errs[i] = f(h) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// keep starts the keeper, which ends the bed when its lifeline is closed.
func (b *Bed) keep(lock *os.File) error {
	end, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer end.Close()
	b.lifeline = lifeline
	keeper := exec.Command("unshare", "--net", "--mount", "--uts", "--", "bash", b.path("keep.sh"), "keep", b.dir, strconv.Itoa(b.settings.networks))
	up, err := start(keeper, b.path("keeper.log"), end, lock)
	if err != nil {
		return err
	}
	b.keeper = keeper
	if err := up(); err != nil {
		return fmt.Errorf("the fabric did not come up: %w", err)
	}
	b.fabric, err = onlyChild(keeper.Process.Pid, 2) // child of unshare, which is the child of the keeper
	return err
}

// start starts a program that writes "up" to the descriptor after those of files, and other
// output to a log. up waits for "up".
func start(cmd *exec.Cmd, log string, files ...*os.File) (up func() error, err error) {
	ready, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer told.Close()
	said, err := os.Create(log)
	if err != nil {
		return nil, errors.Join(err, ready.Close())
	}
	defer said.Close()
	cmd.ExtraFiles = append(files, told)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ^C on a terminal is not for it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ready.Close())
	}
	return func() error { return awaitUp(ready, log) }, nil
}

// awaitUp waits until "up" is written; otherwise the error has the log.
func awaitUp(ready *os.File, log string) error {
	defer ready.Close()
	if err := ready.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	word := make([]byte, 3)
	if _, err := io.ReadFull(ready, word); err == nil {
		return nil
	} else if said, readErr := os.ReadFile(log); readErr == nil && len(said) > 0 {
		return errors.New(strings.TrimSpace(string(said)))
	} else {
		return err
	}
}

// onlyChild returns the only child of a process or, for 2 generations, its only grandchild.
func onlyChild(pid, generations int) (int, error) {
	for range generations {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		if err != nil {
			return 0, err
		}
		child, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			return 0, fmt.Errorf("process %d has the children %q, not one", pid, data)
		}
		pid = child
	}
	return pid, nil
}

// Close stops the bed and returns when nothing of it is left. A second call does nothing.
func (b *Bed) Close() error { return b.close() }

func (b *Bed) end() error {
	var errs []error
	for _, h := range b.hosts {
		errs = append(errs, h.wake())
	}
	if b.lifeline != nil {
		errs = append(errs, b.lifeline.Close())
	}
	if b.keeper != nil {
		errs = append(errs, b.awaitKeeper())
	}
	if _, err := os.Stat(b.dir); err == nil { // no keeper has been started, or it has failed
		errs = append(errs, clean(b.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("taking down the simulated hosts of %s: %w", b.dir, err)
	}
	return b.each((*Host).ended)
}

// awaitKeeper waits for the keeper, which ends because its lifeline is closed.
func (b *Bed) awaitKeeper() error {
	timer := time.AfterFunc(downLimit, func() { _ = b.keeper.Process.Kill() })
	defer timer.Stop()
	err := b.keeper.Wait()
	if err != nil {
		log, _ := os.ReadFile(b.path("keeper.log"))
		err = fmt.Errorf("the keeper: %w\n%s", err, log)
	}
	return err
}

// Host returns host i, counted from 1. It panics if there is none.
func (b *Bed) Host(i int) *Host { return b.hosts[i-1] }

// Hosts returns all hosts in their order.
func (b *Bed) Hosts() []*Host { return b.hosts }

// Controller returns the machine from which gangrun is started.
func (b *Bed) Controller() *Controller { return b.control }

// Shared returns the path of the directory that all hosts, the controller and this process
// share; all users may write to it.
func (b *Bed) Shared() string { return filepath.Join(b.dir, "shared") }

// Absent returns an address of the hosts' network that no host has.
func (b *Bed) Absent() netip.Addr { return address(0, maxHosts+1) }

// run runs a program for at most limit. An error has its output.
func run(input string, argv ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(input)
	_, err := output(cmd)
	return err
}

// output runs cmd and returns its stdout and stderr together. An error has them, too.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
