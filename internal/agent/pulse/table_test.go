package pulse

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/gangrun/gangrun/internal/job"
)

// The state of a rank is the state of the process that does its work.
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

func stateOf(pid int) job.ProcessState {
	s, _ := Look([]int{pid}).Working(pid)
	return State(s.State)
}
