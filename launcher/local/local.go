// Package local starts agents on this machine, as processes of the same
// binary that are connected by a socket pair. It serves real and simulated
// hosts alike.
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
	// LogDir, when set, is a directory in which each agent's own words (not its
	// ranks') are kept as HOST.log; it is made when the first agent starts.
	LogDir string
	// Held is a file that each watchdog keeps open while it lives; nil is none. A watchdog
	// outlives every process of its host, and this process.
	Held *os.File
}

// selfPath is this very program, even if its file has been replaced meanwhile: a
// new build's agent must not serve an old controller.
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
	// Not bound to a context: the agent ends with the connection.
	cmd := exec.Command(selfPath, "agent", host)
	cmd.Args[0] = os.Args[0]
	cmd.ExtraFiles = []*os.File{theirs, lifeline}
	if d.Held != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, d.Held)
	}
	// A process group of its own: the terminal's signals are for gangrun alone. It
	// gives up the terminal by itself; a session of its own would do that too, but
	// where the kernel shares the CPU by sessions (sched(7), autogroup) the ranks of
	// simulated hosts would wait for each other up to twice as long.
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
	conn, err := net.FileConn(ours) // a duplicate
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

// process is a started outer watchdog, with the inner one and the agent under it.
type process struct {
	cmd  *exec.Cmd
	conn net.Conn
	done chan struct{}      // closed when all are gone
	left []leftover.Process // that they had left, and that were killed; set once done is closed
}

// watch waits for the processes in the background. gone is a pipe that all of them
// hold open: its end is the end of all, whichever was killed.
func watch(cmd *exec.Cmd, conn net.Conn, gone *os.File) *process {
	p := &process{cmd: cmd, conn: conn, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_, _ = gone.Read(make([]byte, 1)) // nobody writes: this is io.EOF
		_ = gone.Close()
		if err := cmd.Wait(); err != nil && !cmd.ProcessState.Exited() { // who would end what is left was killed
			p.left, _ = leftover.End(context.Background(), os.Getpid(), "", leftoverLimit)
		}
	}()
	return p
}

// killed names what was killed in the place of a watchdog.
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

// leftoverLimit bounds the wait for what is killed in the place of a watchdog.
const leftoverLimit = 5 * time.Second

// forceAfter is how long an agent may take to end by itself: longer than it
// gives its ranks.
const forceAfter = 5 * time.Second

// forceLooks are the parts in which forceAfter is waited for: where this process gets
// no processor, the agent may have got none either.
const forceLooks = 25

// end closes the connection, which ends the agent, and waits until agent and
// watchdog are gone. An agent that hangs is killed by its watchdog.
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

// agentKill tells a watchdog to kill its agent (see agent.KillSignal).
const agentKill = unix.SIGUSR1
