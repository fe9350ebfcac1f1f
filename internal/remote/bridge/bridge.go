// Package bridge connects a controller on another host to the agent of this host. The controller
// runs one of these commands on this host, for instance over SSH:
//
//	gangrun bridge start TOKEN HOST   starts an agent, which outlives the command
//	gangrun bridge join TOKEN         finds that agent again
//	gangrun bridge rest TOKEN GANG    sends the output of a gang that a dead agent has left
//
// start and join then connect their standard input and output to the socket of the agent. The
// package imports little, so that the commands start fast.
package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/leftover"
)

// Greeting is the beginning of the first line that a bridge prints. After the Greeting, the line has a State,
// the boot ID of the host and the path of gangrun, a tab and a message, and a tab and a hint. A login shell may
// print other text before this line.
const Greeting = "gangrun bridge: "

// State is the state of the agent that a bridge has found.
type State string

// The states.
const (
	Ready  State = "ready"  // the data of the agent follows, or the output that the agent has left
	Gone   State = "gone"   // there is no such agent, and none of its processes is left
	Ending State = "ending" // the agent is ending: it accepts no connections, but still exists
	Failed State = "failed" // the agent could not be started; the message says why
)

// Main is the hidden command "gangrun bridge". It returns the exit code.
func Main(args []string) int {
	var conn *net.UnixConn
	var err error
	var fresh started
	state := Failed
	switch {
	case len(args) == 3 && args[0] == "start" && tokenLike(args[1]):
		conn, fresh, err = start(args[1], args[2])
	case len(args) == 2 && args[0] == "join" && tokenLike(args[1]):
		conn, state, err = join(args[1])
	case len(args) == 3 && args[0] == "rest" && tokenLike(args[1]):
		return handOut(args[1], args[2])
	default:
		fmt.Fprintln(os.Stderr, "gangrun: bridge: this command is for gangrun's own use")
		return 64
	}
	if err != nil {
		say(state, err.Error(), fix(err))
		return 70
	}
	say(Ready, "", "")
	if asked := carry(conn, os.Stdin, os.Stdout); !asked {
		fresh.end() // the controller was gone before it used the agent, and does not know the agent
	}
	return 0
}

// started is an agent that this process has started. The zero value means that it has started none.
type started struct {
	pid int // PID of the agent's outer watchdog
	dir string
}

// end ends an agent that nobody has used. It removes the agent's directory if the agent has not removed it.
func (s started) end() {
	if s.pid == 0 {
		return
	}
	_ = unix.Kill(s.pid, unix.SIGTERM)
	for {
		if _, err := unix.Wait4(s.pid, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	if !held(s.dir) {
		_ = os.RemoveAll(s.dir)
	}
}

// say prints the first line of a bridge (see Greeting).
func say(state State, words, fix string) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = []byte("unknown")
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		self = os.Args[0]
	}
	words = strings.NewReplacer("\n", "; ", "\t", " ").Replace(words)
	// A write to os.Stdout would end this process by SIGPIPE if the controller is gone.
	_, _ = unix.Write(1, fmt.Appendf(nil, "%s%s %s %s\t%s\t%s\n", Greeting, state, bytes.TrimSpace(boot), self, words, fix))
}

// tokenLike reports whether a word has the form of the token of an agent, 32 hexadecimal digits. The token is also the
// name of the agent's directory.
func tokenLike(word string) bool {
	for _, c := range word {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(word) == 32
}

// The files in the directory of an agent.
const (
	socketName = "socket"
	lockName   = "lock" // the agent and its watchdog hold an flock on this file
	logName    = "log"  // standard output and error of the agent and its watchdog
)

// bases returns the directories that may hold the directories of agents, the best one first.
// $XDG_RUNTIME_DIR is last: it is removed when the user's last session ends, and an agent must be
// found after that.
func bases() []string {
	name := "gangrun-" + strconv.Itoa(os.Getuid())
	list := []string{filepath.Join("/tmp", name), filepath.Join("/var/tmp", name), filepath.Join("/dev/shm", name)}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "gangrun"))
	}
	return list
}

// start connects to the agent with the token. If there is no such agent, start starts one. host is the name of this
// host.
func start(token, host string) (*net.UnixConn, started, error) {
	if conn, _, err := find(token); err == nil {
		return conn, started{}, nil
	}
	var errs []error
	for _, base := range bases() {
		dir, err := makeDir(base, token)
		if err == nil {
			var pid int
			if pid, err = launch(dir, host); err == nil {
				sweep(base, token)
				fresh := started{pid, dir}
				conn, err := dial(dir)
				if err != nil {
					fresh.end()
				}
				return conn, fresh, err
			}
			_ = os.RemoveAll(dir)
		}
		errs = append(errs, err)
	}
	return nil, started{}, fmt.Errorf("no directory for the agent's socket: %w", errors.Join(errs...))
}

// makeDir makes the directory of an agent in base, which only this user can use.
func makeDir(base, token string) (string, error) {
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	if err := own(base); err != nil {
		return "", err
	}
	dir := filepath.Join(base, token)
	return dir, os.Mkdir(dir, 0o700)
}

// launch starts an agent that accepts connections on the socket in its directory. It returns the
// process ID of its watchdog.
func launch(dir, host string) (agent int, err error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, fmt.Errorf("lock %q: %w", lock.Name(), err)
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
	if err != nil {
		return 0, err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	if err := os.Chmod(filepath.Join(dir, socketName), 0o600); err != nil { // others cannot enter dir, either
		return 0, err
	}
	socket, err := listener.File()
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	// The agent has a session of its own, so that the end of the SSH session does not end it.
	agent, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], "agent", host}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd(), socket.Fd(), lock.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	return agent, nil
}

// leftoverLimit limits the wait for the end of processes that dead gangs have left behind.
const leftoverLimit = 5 * time.Second

// join connects to an agent. If it returns an error, the State says why. join returns Gone only after all processes
// have ended that were left behind by agents which were killed with their watchdogs.
func join(token string) (*net.UnixConn, State, error) {
	conn, state, err := find(token)
	if state != Gone {
		return conn, state, err
	}
	if _, left := leftover.End(context.Background(), os.Getpid(), "", leftoverLimit); len(left) > 0 {
		p := left[0]
		return nil, Ending, fmt.Errorf("%w, and a process that it has left does not end: process %d (%s of %s, state %s) and %d more", err, p.PID, p.Name, p.Gang, p.State, len(left)-1)
	}
	return conn, state, err
}

// find connects to an agent.
func find(token string) (*net.UnixConn, State, error) {
	for _, base := range bases() {
		dir := filepath.Join(base, token)
		if own(base) != nil || own(dir) != nil {
			continue
		}
		conn, err := dial(dir)
		if err == nil {
			return conn, Ready, nil
		}
		if held(dir) {
			return nil, Ending, fmt.Errorf("the agent in %s accepts no connections: %w", dir, err)
		}
	}
	return nil, Gone, errors.New("there is no such agent")
}

// handOut sends the output that an agent has left, and returns the exit code.
func handOut(token, gang string) int {
	for _, base := range bases() {
		dir := filepath.Join(base, token)
		if own(base) != nil || own(dir) != nil {
			continue
		}
		if held(dir) {
			say(Ending, "the agent in "+dir+" is still there", "")
			return 70
		}
		say(Ready, "", "")
		stdio := newIdleLimit(os.Stdin, os.Stdout, func() { os.Exit(70) })
		if err := rest(dir, gang, stdio, stdio); err != nil {
			fmt.Fprintln(os.Stderr, "gangrun: bridge:", err)
			return 70
		}
		return 0
	}
	say(Gone, "there is no such agent, and nothing that it has left", "")
	return 70
}

// dial connects to the agent whose directory is dir.
func dial(dir string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
}

// held reports whether the agent whose directory is dir, or its watchdog, is running.
func held(dir string) bool {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil // shared, so that several processes can test it at once
}

// keep is how long gangrun keeps the directory of an agent that did not end normally. The directory has output of
// ranks.
const keep = 7 * 24 * time.Hour

// sweep removes old directories of agents.
func sweep(base, but string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		info, err := e.Info()
		if err != nil || !e.IsDir() || e.Name() == but || !tokenLike(e.Name()) || time.Since(info.ModTime()) < keep || held(dir) {
			continue
		}
		_ = os.RemoveAll(dir)
	}
}
