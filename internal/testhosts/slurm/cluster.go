// Package slurm runs a real Slurm on simulated hosts, for tests and for people ("make hosts
// SLURM=1"): slurmctld on the controller, and a slurmd on each host. Slurm limits the memory
// and the devices of jobs by cgroups of version 1. The package needs root.
package slurm

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/noskip"
	"github.com/gangrun/gangrun/internal/testhosts"
)

//go:embed slurmd.sh
var slurmdScript string

// limit bounds each thing that a cluster waits for.
const limit = time.Minute

// nvidiaMajor is the major number of NVIDIA's devices. Where there is no driver, opening one
// fails with ENXIO if the device cgroup allows it, and otherwise with EPERM.
const nvidiaMajor = 195

// Cluster is a Slurm cluster. Its methods may be called at the same time.
type Cluster struct {
	bed     *testhosts.Bed
	dir     string
	cgroup  string // name of the cluster's directory in each hierarchy
	options options

	mu      sync.Mutex
	daemons []*daemon
}

// daemon is a process of the cluster that does not go into the background.
type daemon struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

type options struct {
	gpus, cpus, memory, killWait int
	allDevices, kernelLogs       bool
}

// Option changes what Up makes.
type Option func(*options)

// GPUs gives each host devices nvidia0 to nvidiaN-1.
func GPUs(n int) Option { return func(o *options) { o.gpus = n } }

// AllDevices lets every job open the devices of all GPUs of its nodes. This is the case at
// sites that do not limit devices by cgroups.
func AllDevices() Option { return func(o *options) { o.allDevices = true } }

// KernelLogs gives each host its own kernel log, to which LogKernel adds records. It is empty at
// first. Without KernelLogs, all hosts have the kernel log of this machine.
func KernelLogs() Option { return func(o *options) { o.kernelLogs = true } }

// Memory sets how much of each host's memory jobs can get from Slurm, in MiB.
func Memory(mib int) Option { return func(o *options) { o.memory = mib } }

// Need skips a test if this machine cannot run the cluster. If tests must not be skipped, the
// test fails.
func Need(t testing.TB) {
	t.Helper()
	testhosts.Need(t)
	for _, name := range []string{"munged", "slurmctld", "slurmd", "srun", "scontrol"} {
		if _, err := exec.LookPath(name); err != nil {
			noskip.Skip(t, "a Slurm cluster takes %q, which is not on PATH: run: make deps/test", name)
		}
	}
}

// Up starts a cluster on the hosts of a bed, and returns when all nodes are idle. The
// cluster ends with the test.
func Up(t testing.TB, bed *testhosts.Bed, change ...Option) *Cluster {
	t.Helper()
	Need(t)
	c, err := New(bed, change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("slurmctld.log:\n%s", c.Log("slurmctld"))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// New is like Up, but without a test. The caller must close the cluster, and then the bed.
func New(bed *testhosts.Bed, change ...Option) (*Cluster, error) {
	c := &Cluster{bed: bed, dir: filepath.Join(bed.Shared(), "slurm"), options: options{cpus: 16, memory: 4096, killWait: 3}}
	c.cgroup = "gangrun-slurm-" + filepath.Base(filepath.Dir(bed.Shared()))
	for _, f := range change {
		f(&c.options)
	}
	err := c.writeFiles()
	if err == nil {
		err = c.startMunge()
	}
	if err == nil {
		err = c.StartController()
	}
	for _, h := range bed.Hosts() {
		if err == nil {
			err = c.StartNode(h)
		}
	}
	if err == nil {
		err = c.awaitIdle(len(bed.Hosts()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Slurm: %w", err), c.Close())
	}
	return c, nil
}

// startMunge starts the authentication service, which has one socket for all hosts.
func (c *Cluster) startMunge() error {
	out, err := c.bed.Controller().Exec(context.Background(), "munged", "--force", "--key-file="+c.path("munge/key"), "--socket="+c.path("munge.sock"),
		"--pid-file="+c.path("munge/pid"), "--log-file="+c.path("munge/log"), "--seed-file="+c.path("munge/seed"))
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// StartController starts slurmctld.
func (c *Cluster) StartController() error {
	return c.start("slurmctld", c.bed.Controller().Command(context.Background(), "slurmctld", "-D", "-f", c.path("etc/slurm.conf")))
}

// StopController ends slurmctld in order: slurmctld first saves its state. A slurmctld that was
// killed may forget the newest jobs.
func (c *Cluster) StopController() error { return c.end("slurmctld", syscall.SIGTERM) }

// StartNode starts slurmd on a host. The host must have been booted.
func (c *Cluster) StartNode(h *testhosts.Host) error {
	kmsg := ""
	if c.options.kernelLogs {
		kmsg = c.kernelLog(h.Name())
	}
	cmd, err := h.Command(context.Background(), "bash", c.path("slurmd.sh"), c.cgroup, h.Name(), c.path("etc/slurm.conf"), kmsg)
	if err != nil {
		return err
	}
	return c.start("slurmd-"+h.Name(), cmd)
}

// LogKernel adds a record to the kernel log of a host. The cluster must have the option
// KernelLogs.
func (c *Cluster) LogKernel(host, text string) error {
	log, err := os.OpenFile(c.kernelLog(host), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "3,1,1,-;%s\n", text)
	return errors.Join(err, log.Close())
}

// kernelLog is the file that a host has as /dev/kmsg.
func (c *Cluster) kernelLog(host string) string { return c.path("log", "kmsg-"+host) }

// start starts a daemon. Its output goes to a log.
func (c *Cluster) start(name string, cmd *exec.Cmd) error {
	log, err := os.OpenFile(c.path("log", name+".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return err
	}
	d := &daemon{name, cmd, make(chan struct{})}
	go func() { defer close(d.done); _ = cmd.Wait() }()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.daemons = append(c.daemons, d)
	return nil
}

// kill kills a daemon and waits for its end.
func (c *Cluster) kill(name string) error { return c.end(name, os.Kill) }

// end signals a daemon and waits for its end.
func (c *Cluster) end(name string, sig os.Signal) error {
	c.mu.Lock()
	var kept []*daemon
	var ending []*daemon
	for _, d := range c.daemons {
		if d.name == name {
			ending = append(ending, d)
		} else {
			kept = append(kept, d)
		}
	}
	c.daemons = kept
	c.mu.Unlock()
	for _, d := range ending {
		_ = d.cmd.Process.Signal(sig)
		select {
		case <-d.done:
		case <-time.After(limit):
			return fmt.Errorf("%s does not end", name)
		}
	}
	return nil
}

// awaitIdle waits until so many nodes are idle.
func (c *Cluster) awaitIdle(n int) error {
	var out string
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		out, err = c.Exec(context.Background(), "root", "sinfo", "-h", "-N", "-p", "low", "-t", "idle", "-o", "%N")
		if err == nil && len(strings.Fields(out)) == n {
			return nil
		}
	}
	return fmt.Errorf("%d nodes are not idle: %s\n%s", n, out, c.Log("slurmctld"))
}

// Log returns the log of slurmctld, or of the slurmd of a host ("slurmd-h1"). A daemon may
// print text before it opens its log. That text is in a file next to the log, whose name ends
// in .out.
func (c *Cluster) Log(name string) string {
	log, _ := os.ReadFile(c.path("log", name+".log"))
	return string(log)
}

// Close ends the daemons. The caller must close the hosts afterwards, because only that ends
// the jobs.
func (c *Cluster) Close() error {
	c.mu.Lock()
	names := map[string]bool{}
	for _, d := range c.daemons {
		names[d.name] = true
	}
	c.mu.Unlock()
	var errs []error
	for name := range names {
		errs = append(errs, c.kill(name))
	}
	for _, h := range c.bed.Hosts() {
		if h.Init() != 0 {
			errs = append(errs, h.Kill())
		}
	}
	return errors.Join(append(errs, c.removeCgroups())...)
}

// removeCgroups removes the cluster's directories in the hierarchies.
func (c *Cluster) removeCgroups() error {
	var errs []error
	for _, root := range testhosts.V1Roots("memory", "devices", "freezer") {
		dir := filepath.Join(root, c.cgroup)
		var all []string
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for i := len(all) - 1; i >= 0; i-- {
			err := os.Remove(all[i])
			for deadline := time.Now().Add(limit); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); err = os.Remove(all[i]) {
				time.Sleep(10 * time.Millisecond) // the kernel has not yet reaped the last process
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Devices returns the directory of the GPUs' device files. It is the same on all hosts.
func (c *Cluster) Devices() string { return c.path("dev") }

// mknod makes a character device that all users may open, as far as cgroups allow.
func mknod(path string, major, minor int) error {
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(uint32(major), uint32(minor)))); err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mknod", Path: path, Err: err}
	}
	return os.Chmod(path, 0o666)
}
