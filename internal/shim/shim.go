// Package shim has the processes of gangrun that Open MPI starts: a shim for each rank, and an rsh agent for each
// daemon. Both do what the agent of their host tells them. The package imports little, because a shim is started for
// every rank.
package shim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/affinity"
	"github.com/gangrun/gangrun/internal/environ"
)

// Main is the hidden command "gangrun shim", which Open MPI starts in place of a rank. The
// agent sends the shim the command and the streams of the rank. The shim reports the PID and
// the exit status of the rank, and ends in the same way as the rank. Main returns the exit
// code.
func Main() int {
	// Open MPI's orders to end do not go to the rank, because gangrun ends the rank with its grace period. The signals
	// are handled and not ignored, because the rank would inherit that they are ignored.
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	code, err := run(told)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: shim:", err)
		return 70
	}
	return code
}

func run(told <-chan os.Signal) (int, error) {
	rank, err := strconv.Atoi(cmp.Or(os.Getenv("OMPI_COMM_WORLD_RANK"), os.Getenv("PMIX_RANK")))
	if err != nil {
		return 0, fmt.Errorf("no rank in the environment: %w", err)
	}
	conn, err := dial(Greeting{Shim: true, Rank: rank, PMIx: pmixServers(os.Environ())})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	fds, err := receive(conn, Descriptors)
	if err != nil {
		return 0, err
	}
	var what Order
	if err := json.NewDecoder(conn).Decode(&what); err != nil {
		return 0, err
	}
	say := &speaker{to: json.NewEncoder(conn)}
	go func() { // the goroutine ends with the process
		for sig := range told {
			if sig == unix.SIGTERM {
				_ = say.Encode(Word{Told: true})
			}
		}
	}()
	files := make([]uintptr, len(fds))
	for i, fd := range fds {
		files[i] = uintptr(fd)
	}
	env := environ.Overlay(os.Environ(), texts(what.Env))
	env = environ.Without(env, Variable)
	var pid int
	runtime.LockOSThread()
	affinity.Bound(what.CPUs, func() {
		pid, err = syscall.ForkExec(string(what.Path), texts(what.Argv), &syscall.ProcAttr{
			Dir: string(what.Workdir), Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
		})
	})
	runtime.UnlockOSThread()
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if err != nil {
		errno, _ := err.(syscall.Errno)
		return 70, say.Encode(Word{Error: err.Error(), Errno: int(errno)})
	}
	var over atomic.Bool // the rank has ended
	go func() {          // the goroutine ends with the process
		// The agent sends nothing after the order, so the copy ends when the agent closes the connection or ends. One
		// byte may still arrive: the newline after the order, which the decoder leaves when the order fills its buffer.
		_, _ = io.Copy(io.Discard, conn)
		if !over.Load() {
			_ = unix.Kill(-pid, unix.SIGKILL)
			os.Exit(70)
		}
	}()
	if err := say.Encode(Word{PID: pid}); err != nil {
		return 0, err
	}
	var status unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, os.NewSyscallError("wait4", err)
	}
	over.Store(true)
	if err := say.Encode(Word{Ended: true, Status: uint32(status)}); err != nil {
		return 0, err
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// speaker encodes the messages of several goroutines, one message at a time.
type speaker struct {
	mu sync.Mutex
	to *json.Encoder
}

// Encode sends one message.
func (s *speaker) Encode(w Word) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Encode(w)
}

// dial connects to the agent above this process. It does not use package net, because the initialisation of net takes
// longer than everything else.
func dial(hello Greeting) (*os.File, error) {
	name := os.Getenv(Variable)
	if name == "" {
		return nil, fmt.Errorf("%s is not set: this command is for gangrun's own use", Variable)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	conn := os.NewFile(uintptr(fd), "agent")
	for {
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != unix.EINTR {
			break
		}
	}
	if err != nil && err != unix.EISCONN {
		_ = conn.Close()
		return nil, fmt.Errorf("reach the agent at %s: %w", name, err)
	}
	return conn, json.NewEncoder(conn).Encode(hello)
}

// TCP4 is the text before the address of a PMIx server in an environment variable, as in
// PMIX_SERVER_URI41=3747282944.0;tcp4://127.0.0.1:42267.
const TCP4 = ";tcp4://"

// pmixServers returns the variables by which a PMIx client finds its server.
func pmixServers(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return !strings.HasPrefix(entry, "PMIX_SERVER_URI") || !strings.Contains(entry, TCP4)
	})
}

func texts(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, t := range raw {
		out[i] = string(t)
	}
	return out
}
