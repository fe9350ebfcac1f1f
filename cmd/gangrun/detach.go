package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/gangrun/gangrun/internal/view"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gangrun/gangrun/internal/exact"
	"github.com/gangrun/gangrun/internal/failure"
	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/safefile"
)

func detachFlag() cli.Flag {
	return &cli.BoolFlag{Name: "detach", Usage: "leave the run to a process of its own: print its ID and return"}
}

// detachable has a command's work done by this process or, with --detach, by one that
// is left to itself; self is this process where it is that one.
func detachable(c *cli.Context, asJSON bool, do func(asJSON bool, self *detached) error) error {
	if !c.Bool("detach") {
		return do(asJSON, nil)
	}
	self, err := detachedSelf()
	switch {
	case err != nil:
		return err
	case self == nil:
		return detach(c.App.Writer, asJSON)
	}
	return self.conclude(do(false, self))
}

// detachedEnv tells a process that it is the controller of a detached run, and
// the number of the descriptor on which it tells which. On wordsFD it has the words of
// its command line.
const (
	detachedEnv = "GANGRUN_DETACHED"
	wordsFD     = 4
)

// controllerLog is the file of a run's directory in which a detached controller
// says what it would have said on the terminal.
const controllerLog = "controller.log"

// announced is what a detached controller tells of its run.
type announced struct {
	Run string `json:"run"`
	Dir string `json:"dir"`
	Log string `json:"log"`
}

// detach starts this very command again in a session of its own, which no
// terminal's end and no signal of it reaches, waits for its word that the run has
// begun, and leaves it alone.
func detach(out io.Writer, asJSON bool) error {
	word, told, err := os.Pipe()
	if err != nil {
		return err
	}
	defer word.Close()
	words, err := wordsFile(os.Args)
	if err != nil {
		return errors.Join(err, told.Close())
	}
	defer words.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = shownWords(os.Args)
	cmd.Env = append(os.Environ(), detachedEnv+"=3")
	cmd.ExtraFiles = []*os.File{told, words}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // until it has a log
	if !term.IsTerminal(0) {                      // a file or a pipe is there without the terminal, too
		cmd.Stdin = os.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = told.Close()
	if err != nil {
		return fmt.Errorf("start the detached controller: %w", err)
	}
	var run announced
	text, err := io.ReadAll(word)
	if err != nil || exact.Unmarshal(text, &run) != nil {
		return ownCode(cmd.Wait()) // it has said why
	}
	if err := cmd.Process.Release(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "gangrun: run %[1]s goes on by itself: gangrun attach %[1]s follows it, gangrun stop %[1]s ends it\n", run.Run)
	if asJSON {
		return view.JSON(out, run)
	}
	_, err = fmt.Fprintln(out, run.Run)
	return err
}

// ownCode ends this process as a child has ended that has said why.
func ownCode(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return errors.Join(errors.New("the detached controller has ended without a word"), err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Errorf("the detached controller was ended by signal %d", status.Signal())
	}
	return failure.Exit(exit.ExitCode())
}

// detached is this process where it is the controller of a detached run.
type detached struct {
	word  *os.File // taken by who has started it
	saved int      // the standard error that it was started with; -1 when it is in use
}

// detachedSelf returns this process as a detached controller; nil where it is
// none. It is asked once.
func detachedSelf() (*detached, error) {
	text := os.Getenv(detachedEnv)
	if text == "" {
		return nil, nil
	}
	if err := os.Unsetenv(detachedEnv); err != nil { // it is not for the ranks
		return nil, err
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: %w", detachedEnv, text, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("%s is %q, which is no descriptor: %w", detachedEnv, text, err)
	}
	return &detached{word: os.NewFile(uintptr(fd), "detached"), saved: -1}, nil
}

// settle has everything said from now on go to the run's directory.
func (d *detached) settle(run home.Run) error {
	log, err := safefile.OpenFile(filepath.Join(run.Dir, controllerLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("make the controller's log: %w", err)
	}
	defer log.Close()
	if d.saved, err = unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}

// announce tells who has started this process that the run has begun.
func (d *detached) announce(run home.Run) {
	// Who waits may have been killed: the run does not depend on it.
	if text, err := exact.Marshal(announced{Run: run.ID, Dir: run.Dir, Log: filepath.Join(run.Dir, controllerLog)}); err == nil {
		_, _ = d.word.Write(text)
	}
	_ = d.word.Close()
	d.word = nil
	_ = unix.Close(d.saved)
	d.saved = -1
}

// conclude has an error said where the user sees it, unless the run has begun:
// then it is in the log.
func (d *detached) conclude(err error) error {
	if d.saved >= 0 {
		if dup := unix.Dup3(d.saved, 2, 0); dup != nil {
			return errors.Join(err, os.NewSyscallError("dup3", dup))
		}
	}
	return err
}
