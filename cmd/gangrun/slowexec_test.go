package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangrun/gangrun/internal/testexec"
)

// TestHangingExec ends runs whose ranks hang while they execute their program. Soon after, no process may be left, and
// gangrun must say how the run ended.
func TestHangingExec(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(*controlled)
		said string
	}{
		{"interrupted", func(r *controlled) { r.strike(r.cmd.Process.Pid, unix.SIGINT) }, "cancelled by SIGINT while the gang was up"},
		{"interrupted twice", func(r *controlled) {
			r.strike(r.cmd.Process.Pid, unix.SIGINT)
			r.await("that it ends the gang", func() bool { return strings.Contains(r.file("stderr"), "ending the gang") })
			r.strike(r.cmd.Process.Pid, unix.SIGINT)
		}, "cancelled by SIGINT"},
		{"the controller is killed", func(r *controlled) { r.strike(r.cmd.Process.Pid, unix.SIGKILL) }, ""},
		{"a watchdog is killed", func(r *controlled) { r.strike(r.tree().watchdogs[0], unix.SIGKILL) }, "host-lost"},
		{"an agent is killed", func(r *controlled) { r.strike(r.tree().agents[0], unix.SIGKILL) }, "host-lost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			program, _ := testexec.Hanging(t)
			r := b.start(nil, "--preflight", "off", "--retries", "0", "--loopback", "2", "-n", "4", "--grace", "1s", "--", program, "1000")
			r.await("two processes that are being executed", func() bool { return r.unexecuted() == 2 })
			since := time.Now()
			test.end(r)
			r.vanish(since)
			if took := time.Since(since); took > goneLimit {
				t.Errorf("it took %s", took)
			}
			if said := r.file("stderr"); !strings.Contains(said, test.said) {
				t.Errorf("gangrun did not say %q", test.said)
			}
		})
	}
}

// unexecuted returns the number of children of agents that have not executed their program yet.
func (r *controlled) unexecuted() (n int) {
	for _, agent := range r.tree().agents {
		for _, pid := range children(agent) {
			if exe, err := os.Readlink(proc(pid, "exe")); err == nil && filepath.Base(exe) == filepath.Base(r.binary) {
				n++
			}
		}
	}
	return n
}
