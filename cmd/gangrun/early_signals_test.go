package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSignalsAtTheStart sends signals to gangrun before there is a run. gangrun must exit with the code of the first
// signal. The signals must not kill it.
func TestSignalsAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		signals []syscall.Signal
		codes   []int // several codes, because Linux does not keep the order of pending signals
	}{
		"run":       {[]string{"run", "job.yaml"}, []syscall.Signal{syscall.SIGTERM}, []int{143}},
		"run twice": {[]string{"run", "job.yaml"}, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, []int{130}},
		"run, two":  {[]string{"run", "job.yaml"}, []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}, []int{143, 130}},
		"preflight": {[]string{"preflight", "job.yaml"}, []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, []int{129}},
		"mpiexec":   {[]string{"mpiexec", "-f", "job.yaml", "-n", "1", "true"}, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, []int{130, 143}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			fifo := filepath.Join(b.dir, "job.yaml")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := b.command(c.args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			opened := make(chan *os.File, 1)
			go func() { // ends when gangrun reads the file
				f, _ := os.OpenFile(fifo, os.O_WRONLY, 0)
				opened <- f
			}()
			select {
			case f := <-opened:
				defer f.Close()
			case <-time.After(patience):
				t.Fatal("gangrun does not open its job file")
			}
			for _, sig := range c.signals {
				_ = cmd.Process.Signal(sig)
			}
			_ = cmd.Wait()
			hasCode(t, cmd, c.codes...)
			if entries, _ := filepath.Glob(filepath.Join(b.dir, "home", "runs", "*")); len(entries) > 0 {
				t.Errorf("there is a run: %q", entries)
			}
		})
	}
}

// TestSignalsAtTheEnd sends signals to gangrun when the run has ended and gangrun waits until its report is read. If
// the run has failed, gangrun must exit with the code of the run. Otherwise it must exit with the code of the signal.
func TestSignalsAtTheEnd(t *testing.T) {
	for script, code := range map[string]int{"exit 3": 3, "true": 143} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := b.command("run", "--preflight", "off", "--retries", "0", "-o", "json", "--", "sh", "-c", script, strings.Repeat("x", 120000))
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
				if n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil || n >= 4096 {
					break // gangrun is writing the report, which does not fit into the pipe
				}
				if time.Now().After(limit) {
					t.Fatal("there is no report")
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = cmd.Wait()
			}()
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-done:
				hasCode(t, cmd, code)
			case <-time.After(patience):
				t.Fatal("gangrun does not end")
			}
		})
	}
}

// hasCode checks that a command has exited with one of these codes.
func hasCode(t *testing.T, cmd *exec.Cmd, codes ...int) {
	t.Helper()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	for _, code := range codes {
		if status.Exited() && status.ExitStatus() == code {
			return
		}
	}
	t.Errorf("it ended with %s, want exit code %v", cmd.ProcessState, codes)
}
