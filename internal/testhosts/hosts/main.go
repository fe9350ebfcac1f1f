// Command hosts starts simulated hosts. It then runs a shell, or one command, on their controller,
// from where SSH can reach the hosts. When the shell or command ends, it stops the hosts. "make
// hosts" runs it. In that shell, the command "bed" simulates failures of hosts. With -slurm the
// hosts are a Slurm cluster, and "bob COMMAND" runs a command as a user for whom sshd refuses
// logins. With -containerd, each host runs a containerd.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/gangrun/gangrun/internal/testhosts"
	"github.com/gangrun/gangrun/internal/testhosts/slurm"
)

func main() {
	if filepath.Base(os.Args[0]) == bedName {
		os.Exit(ask(os.Args[1:]))
	}
	n := flag.Int("n", 4, "how many `hosts`")
	command := flag.String("c", "", "the `command` for sh -c; without one, there is a shell")
	second := flag.Bool("second-network", false, "give each host a second network card")
	docker0 := flag.Bool("docker0", false, "give each host a docker0 that leads nowhere")
	withSlurm := flag.Bool("slurm", false, "run a Slurm cluster on the hosts")
	withContainerd := flag.Bool("containerd", false, "run a containerd on each host")
	flag.Parse()
	var options []testhosts.Option
	if *second {
		options = append(options, testhosts.SecondNetwork())
	}
	if *docker0 {
		options = append(options, testhosts.Docker0())
	}
	if *withContainerd {
		options = append(options, testhosts.Containerd())
	}
	// ^C on a terminal is for the program in the shell.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGQUIT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	code, err := run(ctx, setup{*n, *withSlurm, options}, *command)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hosts:", err)
	}
	os.Exit(code)
}

// setup says what to start besides the controller.
type setup struct {
	hosts   int
	slurm   bool
	options []testhosts.Option
}

// run returns the exit code of the command or shell that it runs on the controller.
func run(ctx context.Context, what setup, command string) (code int, err error) {
	b, err := testhosts.New(what.hosts, what.options...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var cluster *slurm.Cluster
	if what.slurm {
		if cluster, err = slurm.New(b); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, cluster.Close()) }()
	}
	s, err := serve(b, cluster)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	prefix := []string{}
	text := fmt.Sprintf("hosts: h1 to h%d are up: ssh h1 works here; %s is the directory that all share; %q lists what can happen to them; exit takes them down\n", what.hosts, b.Shared(), bedName)
	if cluster != nil {
		if err := s.addBob(); err != nil {
			return 1, err
		}
		prefix = cluster.Prefix("root")
		text += fmt.Sprintf("hosts: they are a Slurm cluster: sinfo works here; %q is a shell of a user whom sshd lets in nowhere, and who has gangrun; \"bob COMMAND\" runs one command\n", bobName)
	}
	argv := []string{"sh", "-c", command}
	if command == "" {
		fmt.Fprint(os.Stderr, text)
		argv = []string{"bash"}
	}
	cmd := b.Controller().Command(ctx, append(prefix, argv...)...)
	cmd.Env = append(cmd.Env, s.env()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
