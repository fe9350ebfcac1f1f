package main_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// topRun is a gangrun top in a terminal of its own.
type topRun struct {
	*terminal
	t      *testing.T
	exited chan error
}

// top starts gangrun top in a terminal with so many columns and rows.
func (b *bench) top(t *testing.T, columns, rows uint16, env ...string) *topRun {
	t.Helper()
	x := &topRun{terminal: openTerminal(t), t: t, exited: make(chan error, 1)}
	x.resize(columns, rows)
	cmd := b.command("top")
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, x.tty, x.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { x.exited <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return x
}

func (x *topRun) resize(columns, rows uint16) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		x.t.Fatal(err)
	}
}

// types sends keys, and waits until the screen has shown these texts after that.
func (x *topRun) types(keys string, want ...string) {
	x.t.Helper()
	before := len(x.shown.String())
	if _, err := io.WriteString(x.master, keys); err != nil {
		x.t.Fatal(err)
	}
	x.shows(before, want...)
}

// shows waits until the output has all texts of want. It ignores the first after bytes of the output.
func (x *topRun) shows(after int, want ...string) {
	x.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		shown := ansi.Strip(x.shown.String()[after:])
		missing := ""
		for _, w := range want {
			if !strings.Contains(shown, w) {
				missing = w
			}
		}
		switch {
		case missing == "":
			return
		case time.Now().After(limit):
			x.t.Fatalf("%q is not shown, but\n%q", missing, shown)
		}
	}
}

// ends waits until gangrun top has ended with code 0 and has restored the terminal.
func (x *topRun) ends() {
	x.t.Helper()
	select {
	case err := <-x.exited:
		if err != nil {
			x.t.Errorf("top has ended: %v", err)
		}
	case <-time.After(time.Minute):
		x.t.Fatal("top has not ended")
	}
	const hidden, back = "\x1b[?1049h", "\x1b[?1049l"
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if shown := x.shown.String(); strings.Contains(shown, hidden) && strings.LastIndex(shown, back) > strings.LastIndex(shown, hidden) {
			break
		}
		if time.Now().After(limit) {
			x.t.Fatal("the screen that was there before is not shown again")
		}
	}
	if state, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS); err != nil || state.Lflag&unix.ECHO == 0 {
		x.t.Errorf("the terminal shows not what is typed: %v", err)
	}
}

// TestTop shows a run in a terminal while the run goes on, and after its end.
func TestTop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	run := b.start(nil, "-n", "3", "--preflight", "off", "--name", "up", "--", "sh", "-c",
		`i=0; while ! test -e go; do i=$((i+1)); test $RANK = 2 || echo step $i/5000 loss 0.5; sleep 0.1; done`)
	t.Cleanup(func() { _ = os.WriteFile(b.dir+"/go", nil, 0o600) })
	for len(b.list()) == 0 {
		time.Sleep(20 * time.Millisecond)
	}
	x := b.top(t, 80, 24)
	x.shows(0, "running", "attempt 1", "3 ranks on 1 host", "of 5000", "*RANK", "SILENT", "q quit")
	if !strings.Contains(x.shown.String(), "\x1b[7m") {
		t.Error("the header does not stand out")
	}
	x.types("c", "*CPU")
	x.types("?", "sort by number")
	x.types("s", "asking the run's controller", "taken at ")
	before := len(x.shown.String())
	x.types("n", "*RANK")
	x.resize(200, 50)
	x.shows(before, "PROCS")
	if err := os.WriteFile(b.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-run.exited
	x.shows(before, "succeeded")
	x.types("q")
	x.ends()
}

// TestTopWithoutColours checks that no information is lost without colours.
func TestTopWithoutColours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.command("run", "-n", "2", "--preflight", "off", "--retries", "0", "--", "sh", "-c", "exit $RANK").Run(); err == nil {
		t.Fatal("the run has not failed")
	}
	x := b.top(t, 80, 24, "NO_COLOR=1")
	x.shows(0, "failed", "2 ranks", "!    1  ", "exited", "q quit")
	x.types("\x03")
	x.ends()
	if shown := x.shown.String(); strings.Contains(shown, "\x1b[31m") || strings.Contains(shown, ";31m") {
		t.Errorf("colours are shown: %q", shown)
	}
}
