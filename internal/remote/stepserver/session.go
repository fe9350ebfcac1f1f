package stepserver

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	xssh "golang.org/x/crypto/ssh"
)

// Commands that the server executes itself. It passes all other commands to sh.
const (
	// End makes the server end as soon as it has no descendant processes.
	End = "@end"
	// Self is the beginning of a command that runs gangrun, as in Self + "bridge start ...".
	// The arguments must not contain spaces.
	Self = "@self "
)

// exitStatus is the payload of a request of that name: RFC 4254, 6.10.
type exitStatus struct{ Status uint32 }

// session serves one session: a command, its input and its output.
func (s *server) session(channel xssh.Channel, requests <-chan *xssh.Request) {
	defer channel.Close()
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := false
	for r := range requests {
		var command struct{ Line string }
		ok := r.Type == "exec" && !started && xssh.Unmarshal(r.Payload, &command) == nil
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if !ok {
			continue
		}
		started = true
		running.Go(func() {
			status := exitStatus{s.run(ctx, command.Line, channel)}
			_, _ = channel.SendRequest("exit-status", false, xssh.Marshal(&status))
			_ = channel.Close()
		})
	}
}

// run runs a command and returns its exit code. If a signal has ended the command, the code is the one that a shell
// returns. As with sshd, the end of the session does not end the command, but closes its input.
func (s *server) run(ctx context.Context, line string, channel xssh.Channel) uint32 {
	if line == End {
		s.mu.Lock()
		s.ending = true
		s.mu.Unlock()
		return 0
	}
	cmd := exec.Command("/bin/sh", "-c", line)
	if args, ok := strings.CutPrefix(line, Self); ok {
		cmd = exec.Command("/proc/self/exe", strings.Fields(args)...)
		cmd.Args[0] = os.Args[0]
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return failed(channel, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return failed(channel, err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return failed(channel, err)
	}
	if err := s.started(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}); err != nil {
		return failed(channel, err)
	}
	defer s.ended(cmd.Process.Pid)
	var copying sync.WaitGroup
	go func() { // the goroutine ends with the session or with the command
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	copying.Go(func() { _, _ = io.Copy(channel, out) })
	copying.Go(func() { _, _ = io.Copy(channel.Stderr(), errs) })
	// A descendant of the command may still have the output open. Then copying ends with the session.
	stop := context.AfterFunc(ctx, func() { _, _ = out.Close(), errs.Close() })
	copying.Wait()
	stop()
	var ended *exec.ExitError
	err = cmd.Wait()
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &ended):
		return failed(channel, err)
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + uint32(status.Signal())
	}
	return uint32(ended.ExitCode())
}

// failed reports why a command could not be started.
func failed(channel xssh.Channel, err error) uint32 {
	_, _ = io.WriteString(channel.Stderr(), "gangrun: error: "+err.Error()+"\n")
	return 126
}
