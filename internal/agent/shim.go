package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Shim is the hidden command "gangrun shim": what Open MPI starts as a rank. It
// gets from its agent what to run and with which streams, reports its process
// and how that ended, and ends in the same way. It returns the exit code.
func Shim() int {
	// Open MPI's orders to end are not the rank's: gangrun ends it, and gives it
	// its grace. Handled and not ignored: the rank would inherit that.
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	code, err := shim(told)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: shim:", err)
		return 70
	}
	return code
}

func shim(told <-chan os.Signal) (int, error) {
	rank, err := strconv.Atoi(first(os.Getenv("OMPI_COMM_WORLD_RANK"), os.Getenv("PMIX_RANK")))
	if err != nil {
		return 0, fmt.Errorf("no rank in the environment: %w", err)
	}
	conn, err := dialFront(greeting{Shim: true, Rank: rank, PMIx: pmixServers(os.Environ())})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	fds, err := receiveFiles(conn, 3)
	if err != nil {
		return 0, err
	}
	var what order
	if err := json.NewDecoder(conn).Decode(&what); err != nil {
		return 0, err
	}
	say := &speaker{to: json.NewEncoder(conn)}
	go func() { // ends with the process
		for sig := range told {
			if sig == unix.SIGTERM {
				_ = say.Encode(word{Told: true})
			}
		}
	}()
	files := make([]uintptr, len(fds))
	for i, fd := range fds {
		files[i] = uintptr(fd)
	}
	env := overlay(os.Environ(), texts(what.Env))
	env = without(env, frontVar)
	pid, err := syscall.ForkExec(string(what.Path), texts(what.Argv), &syscall.ProcAttr{
		Dir: string(what.Workdir), Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	if err != nil {
		errno, _ := err.(syscall.Errno)
		return 70, say.Encode(word{Error: err.Error(), Errno: int(errno)})
	}
	if err := say.Encode(word{PID: pid}); err != nil {
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
	if err := say.Encode(word{Ended: true, Status: uint32(status)}); err != nil {
		return 0, err
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// speaker encodes the words of several goroutines, one at a time.
type speaker struct {
	mu sync.Mutex
	to *json.Encoder
}

// Encode sends one word.
func (s *speaker) Encode(w word) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Encode(w)
}

// Rsh is the hidden command "gangrun rsh NODE COMMAND...": mpirun's rsh agent.
// Its daemon is started by the agent of the host that NODE stands for; it stays
// until that has ended. It returns the exit code.
func Rsh(args []string) int {
	for len(args) > 0 && args[0] == "-x" {
		args = args[1:]
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "gangrun: rsh: this command is for gangrun's own use")
		return 64
	}
	conn, err := dialFront(greeting{Node: args[0], Command: []byte(strings.Join(args[1:], " "))})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gangrun: rsh:", err)
		return 70
	}
	defer conn.Close()
	go func() { // ends with the process
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.CloseWrite()
	}()
	var end struct{ Code int }
	if err := json.NewDecoder(conn).Decode(&end); err != nil {
		return 70 // the agent has gone
	}
	return end.Code
}

// dialFront connects to the agent that this process runs under.
func dialFront(hello greeting) (*net.UnixConn, error) {
	name := os.Getenv(frontVar)
	if name == "" {
		return nil, fmt.Errorf("%s is not set: this command is for gangrun's own use", frontVar)
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return conn, json.NewEncoder(conn).Encode(hello)
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// without returns an environment that lacks a variable.
func without(env []string, name string) []string {
	var out []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			out = append(out, entry)
		}
	}
	return out
}
