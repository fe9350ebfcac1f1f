package home_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/home"
	"github.com/gangrun/gangrun/internal/job"
	"github.com/gangrun/gangrun/internal/testexec"
)

// controller starts a process and returns it as a Controller. kill kills the process, which is then a zombie until
// reap.
func controller(t *testing.T) (c job.Controller, kill, reap func()) {
	t.Helper()
	cmd := testexec.Child(t, "controller")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c = home.Self()
	c.PID = cmd.Process.Pid
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.PID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(strings.Fields(string(stat))[21], &c.Start); err != nil {
		t.Fatal(err)
	}
	return c, func() {
			cmd.Process.Kill()
			out.Read(make([]byte, 1)) // when the pipe ends, the process is a zombie or about to become one
		}, func() {
			cmd.Wait()
		}
}

func TestAlive(t *testing.T) {
	self := home.Self()
	with := func(change func(*job.Controller)) job.Controller {
		c := self
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		job.Controller
		alive, known bool
	}{
		"self":            {self, true, true},
		"PID used again":  {with(func(c *job.Controller) { c.Start-- }), false, true},
		"no such process": {with(func(c *job.Controller) { c.PID = 1 << 30 }), false, true},
		"before a reboot": {with(func(c *job.Controller) { c.BootID = "x" }), false, true},
		"other host":      {with(func(c *job.Controller) { c.Host += "x" }), false, false},
		"other host, too": {with(func(c *job.Controller) { c.Host, c.BootID = "x", "x" }), false, false},
		"no start":        {with(func(c *job.Controller) { c.Start = 0 }), false, false},
		"no boot ID":      {with(func(c *job.Controller) { c.BootID = "" }), false, false},
		"nothing":         {job.Controller{}, false, false},
	} {
		if alive, known := home.Alive(test.Controller); alive != test.alive || known != test.known {
			t.Errorf("%s: alive %v, known %v, want %v, %v", name, alive, known, test.alive, test.known)
		}
	}
}

func TestAliveOfAZombie(t *testing.T) {
	c, kill, reap := controller(t)
	if alive, known := home.Alive(c); !alive || !known {
		t.Fatalf("a live process: alive %v, known %v", alive, known)
	}
	kill()
	for begun := time.Now(); ; { // the pipe closes a moment before the process is a zombie
		if time.Since(begun) > time.Minute {
			t.Fatal("a process that was killed lives")
		}
		alive, known := home.Alive(c)
		if !known {
			t.Fatal("nothing is known of a zombie")
		}
		if !alive {
			break
		}
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.PID)); err != nil || !strings.Contains(string(stat), ") Z ") {
		t.Fatalf("it is no zombie: %q (%v)", stat, err)
	}
	reap()
	if alive, known := home.Alive(c); alive || !known {
		t.Errorf("a reaped process: alive %v, known %v", alive, known)
	}
}
