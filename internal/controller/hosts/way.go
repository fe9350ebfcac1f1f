package hosts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/remote/sshclient"
	"github.com/gangrun/gangrun/internal/remote/sshconfig"
	"github.com/gangrun/gangrun/internal/remote/stepserver"
	"github.com/gangrun/gangrun/launcher/kubectl"
	"github.com/gangrun/gangrun/launcher/slurm"
	"github.com/gangrun/gangrun/launcher/ssh"
	"github.com/gangrun/gangrun/topology/inventory"
)

// launcherOf returns how gangrun reaches other hosts. lookup is os.LookupEnv, except in tests.
func launcherOf(mode job.LauncherMode, kind inventory.Kind, lookup func(string) (string, bool)) job.LauncherMode {
	agent, _ := lookup("OMPI_MCA_plm_rsh_agent")
	switch {
	case mode != job.LauncherAuto && mode != "":
		return mode
	case kind == inventory.Slurm:
		return job.LauncherSlurm
	case agent == kubectl.Agent:
		return job.LauncherKubectl
	}
	return job.LauncherSSH
}

// way returns a Dialer for the hosts with these addresses.
func (d *Dialer) way(list inventory.List, spec job.Spec, o DialOptions, targets map[string]string) (ssh.Dialer, error) {
	switch launcherOf(spec.Launcher, list.Kind, os.LookupEnv) {
	case job.LauncherSlurm:
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		d.steps, err = slurm.Open(slurm.Options{Program: self, Dir: o.Dir, Nodes: slices.Sorted(maps.Keys(targets)), Grace: time.Duration(spec.OrphanGrace), Starts: spec.Requeue, Signal: o.BatchSignal, Ended: o.BatchEnded})
		return stepDialer{d.steps}, err
	case job.LauncherKubectl:
		if named := slices.Sorted(maps.Keys(list.Users)); len(named) > 0 {
			return nil, failure.Usage("write the name of the pod alone: "+named[0], "%s@%s: kubectl exec runs programs as the user of the container", list.Users[named[0]], named[0])
		}
		pods, err := kubectl.Find(os.ReadFile)
		if err != nil {
			return nil, &failure.Error{Code: failure.CodeNoPlacement, Err: err}
		}
		return podDialer{pods, func(host string) string { return targets[host] }}, nil
	}
	config, err := sshconfig.Default()
	if err != nil {
		return nil, err
	}
	return ssh.Client{
		Dialer: &sshclient.Dialer{Config: config, Limit: connections, Ask: asker(o.Ask)},
		Target: func(host string) string { return targets[host] },
	}, nil
}

// stepDialer connects to the servers that gangrun has started on the nodes of a Slurm job.
type stepDialer struct{ steps *slurm.Steps }

// Dial implements ssh.Dialer.
func (d stepDialer) Dial(ctx context.Context, host string) (*ssh.Conn, error) {
	client, err := d.steps.Client(ctx, host)
	if err != nil {
		return nil, err
	}
	c := ssh.NewConn(client)
	c.Host.Way = fmt.Sprintf("node %q of the Slurm job", host)
	c.Host.Login = "srun --overlap -N1 -n1 -w " + host
	c.Self = func(args ...string) string { return stepserver.Self + strings.Join(args, " ") }
	return c, nil
}

// podDialer connects to pods.
type podDialer struct {
	pods   kubectl.Pods
	target func(host string) string // the name of a host's pod
}

// Dial implements ssh.Dialer. It does not contact the pod: if kubectl cannot reach it, the first command reports that.
func (d podDialer) Dial(_ context.Context, host string) (*ssh.Conn, error) {
	name := d.target(host)
	pod := d.pods.Pod(name)
	return &ssh.Conn{
		Runner: podRunner{pod},
		Host: ssh.Host{
			Name: host, Way: fmt.Sprintf("pod %q", name), Login: strings.Join(pod.Words(), " "),
			Suspect: "whether the container was ended: kubectl describe pod " + name,
		},
		// The API server and the kubelet may still have data when kubectl is gone.
		Relayed: true,
	}, nil
}

// podRunner makes a pod an ssh.Runner.
type podRunner struct{ *kubectl.Pod }

// Run starts a command with a separate kubectl.
func (r podRunner) Run(ctx context.Context, command string) (*ssh.Process, error) {
	p, err := r.Pod.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return &ssh.Process{Stdin: p.Stdin, Stdout: p.Stdout, Command: p}, nil
}
