package pulse

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// TestWorking checks that the state of a rank is the state of the process that does its work.
func TestWorking(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   job.ProcessState
	}{
		"sleeping":                  {`exec sleep 1000`, job.ProcessSleeping},
		"a wrapper that waits":      {`sleep 1000; true`, job.ProcessSleeping},
		"stopped":                   {`kill -STOP $$`, job.ProcessStopped},
		"stopped in wrappers":       {`sh -c 'sh -c "kill -STOP \$\$; true"; true'; true`, job.ProcessStopped},
		"running":                   {`while :; do :; done`, job.ProcessRunning},
		"running in a wrapper":      {`sh -c 'while :; do :; done'; true`, job.ProcessRunning},
		"running in a pipeline":     {`(while :; do :; done) | (read x; sleep 1000); true`, job.ProcessRunning},
		"running, with a helper":    {`sleep 1000 & exec python3 -c 'while True: pass'`, job.ProcessRunning},
		"ended, and not waited for": {`exit 0`, job.ProcessZombie},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			})
			got := job.ProcessState("")
			for deadline := time.Now().Add(time.Minute); got != c.want; time.Sleep(time.Millisecond) {
				if got = stateOf(cmd.Process.Pid); time.Now().After(deadline) {
					t.Fatalf("it is %s, want %s", got, c.want)
				}
			}
		})
	}
	if s, ok := Look([]int{-1}).Working(-1); ok {
		t.Errorf("a process that is not there is %+v", s)
	}
}

// TestWorkingWithStoppedHelper checks that a rank that sleeps in its own program does not count as stopped because its
// only child is stopped.
func TestWorkingWithStoppedHelper(t *testing.T) {
	cmd := exec.Command("/usr/bin/python3", "-c", "import subprocess, time, signal\nc = subprocess.Popen(['sleep', '1000'])\nc.send_signal(signal.SIGSTOP)\nprint('ready', flush=True)\ntime.sleep(1000)")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		look := Look([]int{pid})
		tree := look.Tree(pid)
		if len(tree) == 2 && tree[0].State == 'S' && tree[1].State == 'T' {
			if s, _ := look.Working(pid); s.PID != pid {
				t.Errorf("the helper %+v does the work", s)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %+v", tree)
		}
	}
}

func stateOf(pid int) job.ProcessState {
	s, _ := Look([]int{pid}).Working(pid)
	return State(s.State)
}
