// Package bridge joins a controller on another host to the agent of this one. An
// SSH session runs "gangrun bridge start TOKEN HOST", which starts an agent that
// outlives the session, or "gangrun bridge join TOKEN", which finds it again; both
// then carry bytes between the session and the agent's socket. Where the agent is gone,
// "gangrun bridge rest TOKEN GANG" hands out what it has left of a gang's output. It is
// a package of its own, which needs next to nothing, so that it is up at once.
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

// Greeting begins the one line that a bridge says before it carries anything: the
// Greeting, a State, the host's boot id, the path of the program, behind a tab
// words, and behind another what to do next. What a login shell has printed may stand
// before it.
const Greeting = "gangrun bridge: "

// State is what a bridge has found.
type State string

// The states.
const (
	Ready  State = "ready"  // what follows comes from the agent, or is what it has left
	Gone   State = "gone"   // there is no such agent, nor any process of it
	Ending State = "ending" // it takes no more connections, and is not gone yet
	Failed State = "failed" // it could not be started; the words say why
)

// Main is the hidden command "gangrun bridge"; it returns the exit code.
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
		fresh.dismiss() // its controller went before it said a word, and knows nothing of it
	}
	return 0
}

// started is an agent that this process has started; the zero started is none.
type started struct {
	pid int // of its watchdog
	dir string
}

// dismiss ends an agent that has been asked for nothing, and removes the directory
// where the agent was too young to do so.
func (s started) dismiss() {
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
	// Not through os.Stdout, where a controller that has gone would end this process.
	_, _ = unix.Write(1, fmt.Appendf(nil, "%s%s %s %s\t%s\t%s\n", Greeting, state, bytes.TrimSpace(boot), self, words, fix))
}

// tokenLike reports whether a word can be an agent's token: 32 hexadecimal digits,
// which name its directory.
func tokenLike(word string) bool {
	for _, c := range word {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(word) == 32
}

// Files of an agent's directory.
const (
	socketName = "socket"
	lockName   = "lock" // flocked by the agent and its watchdog
	logName    = "log"  // what they say
)

// bases are the directories that may hold agents' directories, the best first.
// $XDG_RUNTIME_DIR comes late: it goes with the user's last session, and an agent
// must be found again after that.
func bases() []string {
	name := "gangrun-" + strconv.Itoa(os.Getuid())
	list := []string{filepath.Join("/tmp", name), filepath.Join("/var/tmp", name), filepath.Join("/dev/shm", name)}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "gangrun"))
	}
	return list
}

// start starts the agent of the host called host, unless there is one by that
// token, and connects to it.
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
					fresh.dismiss()
				}
				return conn, fresh, err
			}
			_ = os.RemoveAll(dir)
		}
		errs = append(errs, err)
	}
	return nil, started{}, fmt.Errorf("no directory for the agent's socket: %w", errors.Join(errs...))
}

// makeDir makes an agent's directory below one that only this user can use.
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

// launch starts an agent that serves on the socket of its directory, and returns the PID
// of its watchdog.
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
	if err := os.Chmod(filepath.Join(dir, socketName), 0o600); err != nil { // nobody else gets into dir anyway
		return 0, err
	}
	socket, err := listener.File()
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	// A session of its own, which the end of the SSH session does not reach.
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

// leftoverLimit bounds the wait for the end of what dead gangs have left behind.
const leftoverLimit = 5 * time.Second

// join connects to an agent that there is; the State is that of the error. It is Gone only
// once what agents that were killed with their watchdogs have left on this host has ended.
func join(token string) (*net.UnixConn, State, error) {
	conn, state, err := find(token)
	if state != Gone {
		return conn, state, err
	}
	if _, left := leftover.End(context.Background(), os.Getpid(), "", leftoverLimit); len(left) > 0 {
		p := left[0]
		return nil, Ending, fmt.Errorf("%w, and what it has left does not end: process %d (%s of %s, state %s) and %d more", err, p.PID, p.Name, p.Gang, p.State, len(left)-1)
	}
	return conn, state, err
}

// find connects to an agent that there is.
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
			return nil, Ending, fmt.Errorf("the agent in %s takes no connections: %w", dir, err)
		}
	}
	return nil, Gone, errors.New("there is no such agent")
}

// handOut hands out what an agent has left, and returns the exit code.
func handOut(token, gang string) int {
	for _, base := range bases() {
		dir := filepath.Join(base, token)
		if own(base) != nil || own(dir) != nil {
			continue
		}
		if held(dir) {
			say(Ending, "the agent in "+dir+" is there", "")
			return 70
		}
		say(Ready, "", "")
		end := newHasty(os.Stdin, os.Stdout, func() { os.Exit(70) })
		if err := rest(dir, gang, end, end); err != nil {
			fmt.Fprintln(os.Stderr, "gangrun: bridge:", err)
			return 70
		}
		return 0
	}
	say(Gone, "there is nothing that such an agent has left", "")
	return 70
}

// dial connects to the agent of a directory.
func dial(dir string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, socketName)})
}

// held reports whether an agent or its watchdog lives that has this directory.
func held(dir string) bool {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil // shared: others may look too
}

// keep is how long the directory of an agent that did not end in order is kept,
// for what its ranks have printed.
const keep = 7 * 24 * time.Hour

// sweep removes what agents have left long ago.
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
