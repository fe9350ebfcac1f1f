package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/sshclient"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/text"
	"github.com/gangrun/gangrun/internal/thishost"
	"github.com/gangrun/gangrun/launcher"
	"github.com/gangrun/gangrun/launcher/local"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/topology/inventory"
)

// dialer gets agents onto this machine, and over SSH onto others.
type dialer struct {
	local  local.Dialer
	agents *ssh.Agents // nil where every host is this machine
	own    map[string]bool
}

// Dial implements launcher.Dialer.
func (d dialer) Dial(ctx context.Context, host string) (launcher.Link, error) {
	if d.here(host) {
		link, err := d.local.Dial(ctx, host)
		link.Own = d.own[host]
		return link, err
	}
	return d.agents.Dial(ctx, host)
}

// here reports whether a host is this machine, or is simulated on it.
func (d dialer) here(host string) bool { return d.agents == nil || d.own[host] }

// connections bounds how many SSH connections are being set up at once: each is
// work for both ends.
var connections = 8 * runtime.NumCPU()

// newDialer returns what starts agents on the hosts of a list, or takes those over that
// are held. One of these is not this machine's own, whatever its host is: it was started
// from another machine.
func newDialer(list inventory.List, spec job.Spec, held map[string]job.Agent, logs string, ask func(question string), note func(host, text string), started func(host string, at job.Agent)) (dialer, error) {
	d := dialer{local: local.Dialer{LogDir: logs}, own: map[string]bool{}}
	targets := map[string]string{}
	maybeOwn := slices.DeleteFunc(slices.Clone(list.Hosts), func(h job.Host) bool {
		_, far := held[h.Name]
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
	config, err := sshconfig.Default()
	if err != nil {
		return d, err
	}
	program, err := ssh.Self()
	if err != nil {
		return d, &failure.Error{Code: failure.CodeInternal, Err: err, Hint: "make build"}
	}
	d.agents = &ssh.Agents{
		Dialer: ssh.Client{
			Dialer: &sshclient.Dialer{Config: config, Limit: connections, Ask: asker(ask)},
			Target: func(host string) string { return targets[host] },
		},
		Program:     program,
		OrphanGrace: time.Duration(spec.OrphanGrace), HostTimeout: time.Duration(spec.HostTimeout), Note: note, Started: started, Held: held,
	}
	return d, nil
}

// bring puts gangrun-nvml on other hosts, if it stands beside this program.
func (d dialer) bring() func(ctx context.Context, host string) (string, error) {
	self, err := os.Executable()
	if err != nil || d.agents == nil {
		return nil
	}
	path := filepath.Join(filepath.Dir(self), "gangrun-nvml")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	program := sync.OnceValues(func() (ssh.Program, error) { return ssh.ProgramAt(path, "gangrun-nvml") })
	return func(ctx context.Context, host string) (string, error) {
		p, err := program()
		if err != nil {
			return "", err
		}
		return d.agents.Bring(ctx, host, p)
	}
}

// asker asks a person for a passphrase, where one is there; show tells the person
// what is asked, and "" that nothing is any more.
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
