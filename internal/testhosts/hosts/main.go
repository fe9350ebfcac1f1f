// Command hosts brings up simulated hosts and runs a shell, or one command, on
// their controller, where SSH can reach them; then it takes all down. "make
// hosts" runs it. In the shell, the command bed does to hosts what a day in a
// machine room can.
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
)

func main() {
	if filepath.Base(os.Args[0]) == bedName {
		os.Exit(ask(os.Args[1:]))
	}
	n := flag.Int("n", 4, "how many `hosts`")
	command := flag.String("c", "", "the `command` for sh -c; without one, there is a shell")
	second := flag.Bool("second-network", false, "give each host a second network card")
	docker0 := flag.Bool("docker0", false, "give each host a docker0 that leads nowhere")
	flag.Parse()
	var options []testhosts.Option
	if *second {
		options = append(options, testhosts.SecondNetwork())
	}
	if *docker0 {
		options = append(options, testhosts.Docker0())
	}
	// A terminal's ^C is for what runs in the shell.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGQUIT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	code, err := run(ctx, *n, *command, options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hosts:", err)
	}
	os.Exit(code)
}

// run returns the exit code of the command or shell that it runs on the
// controller of n hosts.
func run(ctx context.Context, n int, command string, options ...testhosts.Option) (code int, err error) {
	b, err := testhosts.New(n, options...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s, err := serve(b)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	argv := []string{"sh", "-c", command}
	if command == "" {
		fmt.Fprintf(os.Stderr, "hosts: h1 to h%d are up: ssh h1 works here; %s is the directory that all share; %q lists what can happen to them; exit takes them down\n", n, b.Shared(), bedName)
		argv = []string{"bash"}
	}
	cmd := b.Controller().Command(ctx, argv...)
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
