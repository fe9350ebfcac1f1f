// Package local starts agents on this machine, for real and simulated hosts. An agent is a process of the same
// program as its controller. A socket pair connects them.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gangrun/gangrun/launcher/agents"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/leftover"
	"github.com/gangrun/gangrun/internal/safefile"
)

// Dialer starts agents on this machine.
type Dialer struct {
	// LogDir, if not empty, is the directory in which each agent writes its own log, HOST.log.
	// The directory is created when the first agent starts.
	LogDir string
	// Held is a file that each watchdog keeps open while it lives; nil means none. A watchdog may live longer
	// than this process: it ends after the agent and all ranks of its host.
	Held *os.File
}

// selfPath is the path of this process's program. It works even if the file has been replaced. Thus the agent has the
// same build as the controller.
const selfPath = "/proc/self/exe"

// Dial starts the agent of a host.
func (d Dialer) Dial(_ context.Context, host string) (agents.Link, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return agents.Link{}, err
	}
	defer theirs.Close()
	gone, lifeline, err := os.Pipe()
	if err != nil {
		return agents.Link{}, errors.Join(err, ours.Close())
	}
	defer lifeline.Close()
	// The command is not bound to ctx, because the agent ends with the connection.
	cmd := exec.Command(selfPath, "agent", host)
	cmd.Args[0] = os.Args[0]
	cmd.ExtraFiles = []*os.File{theirs, lifeline}
	if d.Held != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, d.Held)
	}
	// The agent gets its own process group, so that it receives no signals of the terminal. The agent detaches from the
	// terminal itself. It does not get its own session: if the kernel shares the CPU by sessions (autogroup, see
	// sched(7)), ranks of simulated hosts would wait for each other up to twice as long.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if d.LogDir != "" {
		log, err := d.log(host)
		if err != nil {
			return agents.Link{}, errors.Join(err, ours.Close(), gone.Close())
		}
		defer log.Close()
		cmd.Stderr = log
	}
	if err := cmd.Start(); err != nil {
		return agents.Link{}, errors.Join(err, ours.Close(), gone.Close())
	}
	p := watch(cmd, ours, gone)
	return agents.Link{Conn: ours, Local: true, End: p.end, Killed: p.killed}, nil
}

func (d Dialer) log(host string) (*os.File, error) {
	if err := os.MkdirAll(d.LogDir, 0o700); err != nil {
		return nil, err
	}
	return safefile.OpenFile(filepath.Join(d.LogDir, host+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// socketPair returns a connection and the file that is its other end.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "agent"), os.NewFile(uintptr(fds[1]), "controller")
	conn, err := net.FileConn(ours) // FileConn uses a duplicate of the descriptor
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

// process is an outer watchdog that was started, with the inner watchdog and the agent below it.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
	done chan struct{}      // closed when all processes have ended
	left []leftover.Process // leftover processes that this process has killed; valid once done is closed
}

// watch waits for the processes in the background. Each of them holds the write end of the pipe gone open. So the end
// of file on gone means that all of them have ended, even if some were killed.
func watch(cmd *exec.Cmd, conn net.Conn, gone *os.File) *process {
	p := &process{cmd: cmd, conn: conn, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_, _ = gone.Read(make([]byte, 1)) // returns io.EOF; no process writes to the pipe
		_ = gone.Close()
		if err := cmd.Wait(); err != nil && !cmd.ProcessState.Exited() { // the outer watchdog was killed
			p.left, _ = leftover.End(context.Background(), os.Getpid(), "", leftoverLimit)
		}
	}()
	return p
}

// killed returns a text that names the processes that this process has killed because no watchdog could do it.
func (p *process) killed() string {
	select {
	case <-p.done:
	default:
		return ""
	}
	if len(p.left) == 0 {
		return ""
	}
	return leftover.Killed(p.left)
}

// leftoverLimit limits the time for killing processes that no watchdog has ended.
const leftoverLimit = 5 * time.Second

// forceAfter is how long an agent may take to end by itself. The agent gives its ranks less time.
const forceAfter = 5 * time.Second

// forceLooks is the number of parts into which forceAfter is divided. If this process does not run for a while, it
// counts only one part for that time, because the agent may not have run either.
const forceLooks = 25

// end closes the connection, which ends the agent. It waits until the agent and its watchdogs are gone. If the agent
// hangs, end makes the watchdog kill the agent.
func (p *process) end(ctx context.Context) error {
	_ = p.conn.Close()
	look := time.NewTicker(forceAfter / forceLooks)
	defer look.Stop()
	for looks := 0; ; {
		select {
		case <-p.done:
			return nil
		case <-look.C:
			if looks++; looks != forceLooks {
				continue
			}
			_ = p.cmd.Process.Signal(unix.SIGCONT)
			_ = p.cmd.Process.Signal(agentKill)
		case <-ctx.Done():
			return fmt.Errorf("the agent under process %d does not end: %w", p.cmd.Process.Pid, ctx.Err())
		}
	}
}

// agentKill tells a watchdog to kill its agent (see watchdog.KillSignal).
const agentKill = unix.SIGUSR1
