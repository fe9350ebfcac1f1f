package hosts

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"
	"github.com/gangrun/gangrun/launcher/slurm"

	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/launcher/local"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/topology/inventory"
	"github.com/gangrun/gangrun/topology/probe"
)

// Dialer starts agents on this machine. On other machines, it starts them over SSH, through Slurm or by kubectl.
type Dialer struct {
	local  local.Dialer
	agents *ssh.Agents // nil if every host is this machine
	own    map[string]bool
	steps  *slurm.Steps // nil unless hosts are reached through Slurm
}

// Close ends the steps of the batch system in which gangrun has started agents.
func (d Dialer) Close(ctx context.Context) error {
	if d.steps == nil {
		return nil
	}
	return d.steps.Close(ctx)
}

// Dial implements agents.Dialer.
func (d Dialer) Dial(ctx context.Context, host string) (agents.Link, error) {
	if d.Here(host) {
		link, err := d.local.Dial(ctx, host)
		link.Own = d.own[host]
		return link, err
	}
	return d.agents.Dial(ctx, host)
}

// Here reports whether a host is this machine, or is simulated on it.
func (d Dialer) Here(host string) bool { return d.agents == nil || d.own[host] }

// connections limits how many SSH connections are set up at the same time, because each of them costs both ends CPU
// time.
var connections = 8 * runtime.NumCPU()

// DialOptions are settings for starting agents.
type DialOptions struct {
	Held    map[string]job.Agent // agents that an earlier controller has started
	Dir     string               // the directory of the run
	LogDir  string               // the directory for the logs of agents on this machine
	Lock    *os.File             // the lock on the run's directory
	Ask     func(question string)
	Note    func(host, text string)
	Started func(host string, at job.Agent)
	// BatchSignal is called when the batch system has signalled the job on its nodes. BatchEnded is
	// called when the batch system has ended gangrun's processes there. Neither may block.
	BatchSignal func(syscall.Signal)
	BatchEnded  func()
}

// NewDialer returns a Dialer for the hosts of a list. It takes over the agents in o.Held. gangrun reaches a host with
// such an agent over the network, even if the host is this machine, because a controller on another machine has
// started the agent over the network.
func NewDialer(list inventory.List, spec job.Spec, o DialOptions) (Dialer, error) {
	if spec.Launcher == job.LauncherSlurm && list.Kind != inventory.Slurm {
		return Dialer{}, failure.Usage("leave out --launcher slurm, or run gangrun inside a Slurm job, without --hosts", "the hosts are not the nodes of a Slurm job that gangrun is in")
	}
	d := Dialer{local: local.Dialer{LogDir: o.LogDir, Held: o.Lock}, own: map[string]bool{}}
	targets := map[string]string{}
	maybeOwn := slices.DeleteFunc(slices.Clone(list.Hosts), func(h job.Host) bool {
		_, far := o.Held[h.Name]
		_, as := list.Users[h.Name]
		return far || as
	})
	if len(maybeOwn) > 0 {
		d.own = thishost.New().Among(context.Background(), maybeOwn)
	}
	for _, h := range list.Hosts {
		if d.own[h.Name] {
			continue
		}
		targets[h.Name] = h.Address
		if user := list.Users[h.Name]; user != "" {
			targets[h.Name] = user + "@" + h.Address
		}
	}
	if len(targets) == 0 {
		return d, nil
	}
	program, err := ssh.Self()
	if err != nil {
		return d, &failure.Error{Code: failure.CodeInternal, Err: err, Hint: "make build"}
	}
	way, err := d.way(list, spec, o, targets)
	if err != nil {
		return d, err
	}
	d.agents = &ssh.Agents{
		Dialer:      way,
		Program:     program,
		OrphanGrace: time.Duration(spec.OrphanGrace), HostTimeout: time.Duration(spec.HostTimeout), Note: o.Note, Started: o.Started, Held: o.Held,
	}
	return d, nil
}

// Bring returns a function that copies gangrun-nvml to another host and returns its path there. It
// returns nil if gangrun-nvml is not in the directory of this program.
func (d Dialer) Bring() func(ctx context.Context, host string) (string, error) {
	program := d.nvml()
	if program == nil {
		return nil
	}
	return func(ctx context.Context, host string) (string, error) {
		p, err := program()
		if err != nil {
			return "", err
		}
		return d.agents.Bring(ctx, host, p)
	}
}

// nvml returns a function that reads gangrun-nvml for other hosts. It returns nil if there are no
// other hosts, or if gangrun-nvml is not in the directory of this program.
func (d Dialer) nvml() func() (ssh.Program, error) {
	self, err := os.Executable()
	if err != nil || d.agents == nil {
		return nil
	}
	path := filepath.Join(filepath.Dir(self), "gangrun-nvml")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return sync.OnceValues(func() (ssh.Program, error) { return ssh.ProgramAt(path, "gangrun-nvml") })
}

// RunNVML returns a function that runs gangrun-nvml on another host, with arguments. It returns nil
// if that is possible on no host.
func (d Dialer) RunNVML() func(ctx context.Context, host string, args ...string) (probe.Remote, error) {
	program := d.nvml()
	if program == nil {
		return nil
	}
	return func(ctx context.Context, host string, args ...string) (probe.Remote, error) {
		p, err := program()
		if err != nil {
			return probe.Remote{}, err
		}
		r, err := d.agents.Run(ctx, host, p, args...)
		if err != nil {
			return probe.Remote{}, err
		}
		return probe.Remote{Stdout: r.Stdout, Stderr: r.Stderr, Close: r.Close}, nil
	}
}

// asker returns a function that asks the user for a passphrase on the terminal. It returns nil if there is no terminal.
// show shows the question. A call of show with "" removes the question.
func asker(show func(question string)) func(prompt string) (string, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return func(prompt string) (string, error) {
		show(text.Printable(prompt))
		defer show("")
		secret, err := term.ReadPassword(int(os.Stdin.Fd()))
		return string(secret), err
	}
}
