// Package detached runs a controller in the background: gangrun starts itself again without
// the terminal, waits until the run has begun, and returns.
package detached

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/safefile"
)

const (
	// envName is set in the environment of a detached controller. Its value is the
	// descriptor on which the controller announces its run.
	envName = "GANGRUN_DETACHED"
	// wordsFD is the descriptor from which a detached controller reads its command line.
	wordsFD = 4
	// logName is the name of a file in a run's directory, to which a detached controller writes instead of the
	// terminal.
	logName = "controller.log"
)

// Run is what a detached controller announces about its run.
type Run struct {
	Run string `json:"run"`
	Dir string `json:"dir"`
	Log string `json:"log"`
}

// Start starts gangrun again with the given arguments. The new process has its own session, so that the end of the
// terminal and the terminal's signals do not reach it. Start returns when the run has begun. If the new process ends
// before that, it has already reported the reason. The error then has only the exit code of that process.
func Start(args []string) (Run, error) {
	announcement, w, err := os.Pipe()
	if err != nil {
		return Run{}, err
	}
	defer announcement.Close()
	words, err := wordsFile(args)
	if err != nil {
		return Run{}, errors.Join(err, w.Close())
	}
	defer words.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = shownWords(args)
	cmd.Env = append(os.Environ(), envName+"=3")
	cmd.ExtraFiles = []*os.File{w, words}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // until the controller has a log
	if !term.IsTerminal(0) {                      // a file or a pipe does not depend on the terminal
		cmd.Stdin = os.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return Run{}, fmt.Errorf("start the detached controller: %w", err)
	}
	var run Run
	data, err := io.ReadAll(announcement)
	if err != nil || exact.Unmarshal(data, &run) != nil {
		return Run{}, exitOf(cmd.Wait())
	}
	return run, cmd.Process.Release()
}

// exitOf returns the error for a controller that has ended without announcing a run.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return errors.Join(errors.New("the detached controller has ended without a message"), err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Errorf("the detached controller was ended by signal %d", status.Signal())
	}
	return failure.Exit(exit.ExitCode())
}

// Process is this process if it is a detached controller.
type Process struct {
	parent      *os.File // the file to which the run is announced
	savedStderr int      // the standard error with which the process was started; -1 after Announce
}

// Self returns this process if it is a detached controller, and otherwise nil. It must be
// called once.
func Self() (*Process, error) {
	value := os.Getenv(envName)
	if value == "" {
		return nil, nil
	}
	if err := os.Unsetenv(envName); err != nil { // the ranks must not inherit the variable
		return nil, err
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: %w", envName, value, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("%s is %q, which is no descriptor: %w", envName, value, err)
	}
	return &Process{parent: os.NewFile(uintptr(fd), "detached"), savedStderr: -1}, nil
}

// UseLog redirects standard output and standard error to a file of the run's directory.
func (p *Process) UseLog(run home.Run) error {
	log, err := safefile.OpenFile(filepath.Join(run.Dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("make the controller's log: %w", err)
	}
	defer log.Close()
	if p.savedStderr, err = unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}

// Announce reports to the process that has called Start that the run has begun.
func (p *Process) Announce(run home.Run) {
	// An error means that the other process was killed. The run does not depend on that process.
	if data, err := exact.Marshal(Run{Run: run.ID, Dir: run.Dir, Log: filepath.Join(run.Dir, logName)}); err == nil {
		_, _ = p.parent.Write(data)
	}
	_ = p.parent.Close()
	p.parent = nil
	_ = unix.Close(p.savedStderr)
	p.savedStderr = -1
}

// RestoreStderr returns err. If the run has not begun, it first restores the original
// standard error, so that the user sees err. After the run has begun, err belongs in the
// log.
func (p *Process) RestoreStderr(err error) error {
	if p.savedStderr >= 0 {
		if dup := unix.Dup3(p.savedStderr, 2, 0); dup != nil {
			return errors.Join(err, os.NewSyscallError("dup3", dup))
		}
	}
	return err
}
